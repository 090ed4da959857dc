"""Signing in with a provider: OpenID Connect's authorization code flow with PKCE, and GitHub's form of it."""
