"""Bearer tokens of an identity provider (OpenID Connect), checked by PyJWT with the keys of the
issuer that the settings name.

The keys are fetched at the first token and again when they are old or a token names another one.
While they cannot be fetched, no token lets anybody in.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import httpx
import jwt
from jwt.algorithms import has_crypto

from flows.service.access import ROLES, Caller, IssuerFailed, KeyMissing, NotAllowed, Role
from flows.setting_areas import VALUE, WHERE, ServiceSettings
from storage.errors import SettingsError

# Only asymmetric ones: with these the service holds nothing that could sign a token.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
KEY_TYPES = {"RSA", "EC", "OKP"}
REQUIRED = ["iss", "aud", "exp", "sub"]
LEEWAY = 30  # seconds that the clocks of issuer and service may differ
KEPT = 600.0  # seconds that fetched keys count: so long may a withdrawn key still be used
PAUSE = 10.0  # seconds between two fetches, whatever tokens say
WITHIN = 10.0  # seconds for an answer of the issuer
ANY = "*"
_NEW_TOKEN = "Get a new token, or use a key of this service."  # noqa: S105 -- a remedy


class TokenIssuer:
    """Finds who sent a token. `settings` name the issuer, the audience, the claim and the grants;
    `clock` gives seconds.

    Raises SettingsError where PyJWT cannot check signatures, and where nothing is granted.
    """

    def __init__(
        self, settings: ServiceSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._audience = settings.oidc_audience
        self._claim = settings.oidc_claim
        self._grants = settings.oidc_grants
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._clock = clock
        self._fetched = self._tried = -math.inf  # by the clock
        self._fetching = asyncio.Lock()
        if not has_crypto:
            expected = "`pip install 'trellis-rag[oidc]'` first"
            raise SettingsError("service.oidc_issuer", self._issuer, expected)
        if not self._grants:
            expected = f"a role for a value of the claim {self._claim!r}: VALUE=ROLE"
            raise SettingsError("service.oidc_grants", "", expected)

    def reads(self, credential: str) -> bool:
        """Whether a credential has the form of a token: three parts between dots."""
        return credential.count(".") == 2

    async def caller(self, token: str) -> Caller:
        """Return the sender of a token, named by its subject.

        Raises KeyMissing for a token that is not valid, NotAllowed for one whose claim grants
        nothing, IssuerFailed where the keys cannot be had.
        """
        try:
            name = jwt.get_unverified_header(token).get("kid")
            claims = jwt.decode(
                token,
                await self._key(name),
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": REQUIRED},
            )
        except jwt.InvalidTokenError as error:
            raise KeyMissing(f"This token is not valid: {error}.", _NEW_TOKEN) from None
        granted = list(self._granted(claims))
        if not granted:
            raise NotAllowed(
                f"The claim {self._claim!r} of this token grants nothing here.",
                "Ask who runs the service (service.oidc_grants).",
            )
        # A role counts where it is granted for all that the token reads.
        readable = _filters(granted, "ask")
        role = next(role for role in reversed(ROLES) if _filters(granted, role) == readable)
        where = None if "" in readable else " or ".join(f"({one})" for one in sorted(readable))
        return Caller(f"oidc:{claims['sub']}", role, where)

    def _granted(self, claims: Mapping[str, Any]) -> Iterator[tuple[Role, str]]:
        """Yield the role and the filter (empty: none) of each value that has a grant."""
        for value in _values(claims, self._claim):
            grant = self._grants.get(value, self._grants.get(ANY))
            if grant:
                role, _, where = grant.partition(WHERE)
                text = "'" + value.replace("'", "''") + "'"
                yield cast("Role", role), where.replace(VALUE, text)

    async def _key(self, name: str | None) -> jwt.PyJWK:
        """Return the key of this id; without an id the only one. Fetch the keys where needed."""
        async with self._fetching:
            now = self._clock()
            known = name in self._keys or (name is None and self._keys)
            if now - self._fetched >= KEPT or (not known and now - self._tried >= PAUSE):
                await self._fetch()
        if name is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if name is None or name not in self._keys:
            raise jwt.InvalidTokenError("the issuer has no key of its id")
        return self._keys[name]

    async def _fetch(self) -> None:
        """Fetch the keys from where the issuer says they are (OpenID Connect Discovery 1.0)."""
        remedy = "Ask again in a moment; a key of this service needs no issuer."
        if self._tried > self._fetched and self._clock() - self._tried < PAUSE:
            raise IssuerFailed("The issuer of tokens failed a moment ago.", remedy)
        self._tried = self._clock()
        try:
            async with httpx.AsyncClient(timeout=WITHIN) as client:
                place = self._issuer.rstrip("/") + "/.well-known/openid-configuration"
                stated = (await client.get(place)).raise_for_status().json()
                if stated["issuer"] != self._issuer:
                    raise ValueError(f"it calls itself {stated['issuer']!r}")
                found = (await client.get(stated["jwks_uri"])).raise_for_status().json()
            rows = [row for row in found["keys"] if row.get("kty") in KEY_TYPES]
            keys = jwt.PyJWKSet.from_dict({"keys": rows}).keys
        except (httpx.HTTPError, ValueError, LookupError, TypeError, jwt.PyJWTError) as error:
            message = f"The keys of {self._issuer} cannot be fetched: {error}"
            raise IssuerFailed(message, remedy) from error
        self._keys = {key.key_id or "": key for key in keys if key.public_key_use != "enc"}
        self._fetched = self._tried


def _filters(granted: Sequence[tuple[Role, str]], role: Role) -> set[str]:
    """Return the filters that are granted with a role or a higher one; an empty one lets all
    through, whatever the others are.
    """
    own = {where for one, where in granted if ROLES.index(one) >= ROLES.index(role)}
    return {""} if "" in own else own


def _values(claims: Mapping[str, Any], name: str) -> Sequence[str]:
    """Return the values of a claim; a name with dots may lead into objects."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    values = found if isinstance(found, list) else [found]
    return [value for value in values if isinstance(value, str)]
