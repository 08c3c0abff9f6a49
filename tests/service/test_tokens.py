"""Bearer tokens of an issuer on this machine: real keys, real signatures, over HTTP."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from flows.service.access import Caller, IssuerFailed, KeyMissing, NotAllowed
from flows.service.tokens import KEPT, LEEWAY, PAUSE, TokenIssuer
from flows.setting_areas import ServiceSettings
from storage.errors import SettingsError
from tests.service.conftest import DOCUMENTS, Start, keys_of, refused
from tests.service.issuer import AUDIENCE, Issuer, issuing, rsa_key
from tests.settings import load_settings

GRANTS = {
    "staff": "ask",
    "editors": "edit",
    "bridge": "edit where document = $value",
    "*": "ask where document = $value",
}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def reader(issuer: Issuer, clock: Clock | None = None, **settings: object) -> TokenIssuer:
    given = {"oidc_issuer": issuer.address, "oidc_grants": GRANTS, **settings}
    return TokenIssuer(ServiceSettings.model_validate(given), clock or Clock())


@pytest.mark.parametrize(
    ("groups", "role", "where"),
    [
        ("staff", "ask", None),
        (["staff", "editors"], "edit", None),
        (["bridge"], "edit", "(document = 'bridge')"),
        (["reyd", "o'neil"], "ask", "(document = 'o''neil') or (document = 'reyd')"),
        (["bridge", "reyd"], "ask", "(document = 'bridge') or (document = 'reyd')"),
        (["bridge", "staff"], "ask", None),
        (["bridge", "editors"], "edit", None),
    ],
)
async def test_a_claim_decides_on_role_and_filter(
    issuer: Issuer, groups: object, role: str, where: str | None
) -> None:
    caller = await reader(issuer).caller(issuer.token(groups=groups))
    assert caller == Caller("oidc:ann", role, where)  # type: ignore[arg-type]


async def test_a_claim_may_lie_within_an_object(issuer: Issuer) -> None:
    token = issuer.token(realm_access={"roles": ["staff"]})
    assert (await reader(issuer, oidc_claim="realm_access.roles").caller(token)).role == "ask"
    named = issuer.token(**{"https://x.example/roles": "staff"})
    assert (await reader(issuer, oidc_claim="https://x.example/roles").caller(named)).role == "ask"


@pytest.mark.parametrize("groups", [None, [], 7, {"a": "staff"}, [["staff"]]])
async def test_a_token_without_a_grant_is_not_allowed(issuer: Issuer, groups: object) -> None:
    with pytest.raises(NotAllowed, match="grants nothing"):
        await reader(issuer).caller(issuer.token(groups=groups))


NOW = int(time.time())


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - LEEWAY - 60},
        {"exp": None},
        {"nbf": NOW + 3600},
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": None},
        {"sub": None},
    ],
)
async def test_a_token_that_is_not_meant_is_refused(issuer: Issuer, claims: dict[str, Any]) -> None:
    with pytest.raises(KeyMissing, match="not valid"):
        await reader(issuer).caller(issuer.token(groups="staff", **claims))


async def test_clocks_may_differ_by_the_leeway(issuer: Issuer) -> None:
    late = issuer.token(groups="staff", exp=int(time.time()) - LEEWAY // 2)
    assert (await reader(issuer).caller(late)).name == "oidc:ann"


async def test_only_asymmetric_signatures_of_its_keys_count(issuer: Issuer) -> None:
    private = issuer.keys["one"]
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    claims = {"iss": issuer.address, "aud": AUDIENCE, "sub": "ann", "exp": NOW + 3600}
    head = {"kid": "one"}
    secret = public.decode()[27:80]  # what a verifier that confuses the kinds of keys would take
    forged = [
        jwt.encode(claims, secret, "HS256", headers=head),
        jwt.encode(claims, None, "none", headers=head),  # type: ignore[arg-type]
        jwt.encode(claims, rsa_key(), "RS256", headers=head),
        jwt.encode(claims, rsa_key(), "RS256", headers={"kid": "unknown"}),
        jwt.encode(claims, rsa_key(), "RS256"),
        issuer.token(groups="staff")[:-8] + "AAAAAAAA",
        "a.b.c",
    ]
    for token in forged:
        with pytest.raises(KeyMissing):
            await reader(issuer).caller(token)
    issuer.keys["ec"] = ec.generate_private_key(ec.SECP256R1())
    assert (await reader(issuer).caller(issuer.token("ec", groups="staff"))).role == "ask"


async def test_keys_are_kept_and_follow_their_rotation(issuer: Issuer) -> None:
    clock = Clock()
    tokens = reader(issuer, clock)
    old = issuer.token(groups="staff")
    for _ in range(3):
        await tokens.caller(old)
    assert issuer.fetched == 1
    issuer.keys = {"two": rsa_key()}
    new = issuer.token("two", groups="staff")
    with pytest.raises(KeyMissing):  # Unknown ids do not make it ask again and again.
        await tokens.caller(new)
    assert issuer.fetched == 1
    clock.now += PAUSE
    assert (await tokens.caller(new)).name == "oidc:ann"
    with pytest.raises(KeyMissing, match="no key"):
        await tokens.caller(old)
    assert issuer.fetched == 2


async def test_a_failed_issuer_lets_nobody_in(issuer: Issuer) -> None:
    clock = Clock()
    tokens, token = reader(issuer, clock), issuer.token(groups="staff")
    issuer.fails = True
    for _ in range(2):
        with pytest.raises(IssuerFailed):
            await tokens.caller(token)
    issuer.fails, clock.now = False, clock.now + PAUSE
    await tokens.caller(token)
    issuer.fails, clock.now = True, clock.now + KEPT - 1
    await tokens.caller(token)  # by the keys that it had given
    clock.now += 1
    with pytest.raises(IssuerFailed):
        await tokens.caller(token)
    issuer.fails, issuer.calls_itself = False, "https://other.example"
    clock.now += PAUSE
    with pytest.raises(IssuerFailed, match="calls itself"):
        await tokens.caller(token)


# --- in the service ---


def test_a_token_is_taken_beside_a_key(start: Start, issuer: Issuer) -> None:
    (key,), rows = keys_of("ask")
    client = start(keys=rows, oidc_issuer=issuer.address, oidc_grants=GRANTS, rpm=100)

    def documents(token: str) -> httpx.Response:
        return client.get(DOCUMENTS, headers={"authorization": f"Bearer {token}"})

    assert documents(key).json()["total"] == 3
    assert documents(issuer.token(groups="staff")).json()["total"] == 3
    seen = documents(issuer.token(groups=["bridge"])).json()
    assert [row["id"] for row in seen["documents"]] == ["bridge"]
    refused(documents(issuer.token(groups="none-of-them", exp=NOW - 3600)), 401, "KeyMissing")
    refused(documents(issuer.token()), 403, "NotAllowed")
    refused(documents(issuer.token(groups="no such document")), 404, "NothingToRead")
    refused(client.get(DOCUMENTS), 401, "KeyMissing")


def test_with_an_issuer_alone_nobody_is_let_in_without(start: Start, issuer: Issuer) -> None:
    client = start(oidc_issuer=issuer.address, oidc_grants=GRANTS)
    refused(client.get(DOCUMENTS), 401, "KeyMissing")
    issuer.fails = True
    bearer = {"authorization": f"Bearer {issuer.token(groups='staff')}"}
    refused(client.get(DOCUMENTS, headers=bearer), 503, "IssuerFailed")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OIDC_ISSUER", "http://login.example"),
        ("OIDC_ISSUER", "login.example"),
        ("OIDC_GRANTS", "staff=root"),
        ("OIDC_GRANTS", "staff=ask where team ="),
        ("OIDC_GRANTS", "staff=ask where team = '$value'"),
    ],
)
def test_a_wrong_setting_of_tokens_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name.lower()):
        load_settings(environment={f"TRELLIS_SERVICE_{name}": value})


def test_an_issuer_without_grants_is_refused(start: Start, issuer: Issuer) -> None:
    with pytest.raises(SettingsError, match="oidc_grants"):
        start(oidc_issuer=issuer.address)
