"""GitHub, which knows OAuth and no ID tokens: who somebody is, is asked with the access token that the code gave."""

from __future__ import annotations

from api.provider.speaking import Claims, Grant, failed, fetched
from kernelgate.settings import settings

ISSUER = "https://github.com"


class GitHub:
    """GitHub as a provider. `site` and `api` differ where somebody runs their own."""

    names_issuer = False
    scope = "read:user user:email"

    def __init__(self, site: str = ISSUER, api: str = "https://api.github.com") -> None:
        self.issuer = site
        self.authorize = f"{site}/login/oauth/authorize"
        self._token = f"{site}/login/oauth/access_token"
        self._api = api

    def claims(self, grant: Grant) -> Claims:
        values = settings()
        form = {
            "client_id": values.oidc_client_id,
            "client_secret": values.oidc_client_secret.get_secret_value(),
            "code": grant.code,
            "redirect_uri": grant.redirect,
            "code_verifier": grant.verifier,
        }
        said = fetched("POST", self._token, form=form)
        token = said.get("access_token") if isinstance(said, dict) else None
        if not isinstance(token, str):
            raise failed(f"GitHub gave no access token: {str(said)[:100]}")
        headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": "2022-11-28"}
        user = fetched("GET", f"{self._api}/user", headers=headers)
        emails = fetched("GET", f"{self._api}/user/emails", headers=headers)
        # The number stays; the name can be given up and taken by somebody else.
        number = user.get("id") if isinstance(user, dict) else None
        if not isinstance(number, int) or not isinstance(emails, list):
            raise failed("GitHub's answer names nobody")
        primary = (
            each.get("email", "")
            for each in emails
            if isinstance(each, dict) and each.get("primary") is True and each.get("verified") is True
        )
        return Claims(self.issuer, str(number), str(next(primary, "")), str(user.get("login", ""))[:100])
