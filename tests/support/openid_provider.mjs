// A certified OpenID provider for tests: npm's oidc-provider with its own pages. Each start has new keys.
// The argument is JSON: port, redirect, home, audience, persons (names with their groups).

import { generateKeyPairSync, randomUUID } from "node:crypto";

const wanted = JSON.parse(process.argv[2]);
const { Provider } = await import(wanted.module);

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
const groupsOf = (name) => wanted.persons[name] ?? [];

const provider = new Provider(`http://127.0.0.1:${wanted.port}`, {
  jwks: { keys: [key] },
  cookies: { keys: [randomUUID()] },
  clients: [
    {
      client_id: "groundskeeper",
      client_secret: "a secret: with/all+signs%",
      grant_types: ["authorization_code", "client_credentials"],
      redirect_uris: [wanted.redirect],
      post_logout_redirect_uris: [wanted.home],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  scopes: ["openid", "profile", "groups"],
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id, groups: groupsOf(id) }) }),
  extraTokenClaims: () => ({ groups: groupsOf("robot") }),
  ttl: { ClientCredentials: 600 },
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    rpInitiatedLogout: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: (_, resource) => ({ scope: "", audience: resource, accessTokenFormat: "jwt" }),
    },
  },
});
provider.listen(wanted.port, "127.0.0.1", () => console.log("ready"));
