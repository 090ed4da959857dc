// A real OpenID Connect provider for the tests: any name signs in with any password, at the forms that come with it.
// usage: node tests/api/provider.mjs PORT
import { Provider } from "../../web/node_modules/oidc-provider/lib/index.js";

const port = process.argv[2];

/** "unverified-NAME" has an address that nobody verified. */
function account(name) {
  const claims = {
    sub: `subject-${name}`,
    preferred_username: name,
    email: `${name.replace("unverified-", "")}@uni.example`,
    email_verified: !name.startsWith("unverified-"),
  };
  return { accountId: name, claims: async () => claims };
}

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "kernelgate",
      client_secret: "a secret: of+the/client",
      // A native client comes back to any port of this machine, so that one provider serves all tests.
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/sign-in/provider/back", "http://localhost/sign-in/provider/back"],
    },
  ],
  cookies: { keys: ["tests"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username"] },
  findAccount: async (_context, name) => account(name),
  pkce: { required: () => true },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
process.stdin.on("end", () => process.exit(0)).resume();
