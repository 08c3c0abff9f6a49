"""Read the keys of model servers from secret blocks of Prefect's server."""

import tasks.prefect_environment  # noqa: F401 -- before Prefect

import httpx
from prefect.blocks.system import Secret
from prefect.exceptions import PrefectException
from prefect.settings import get_current_settings

from flows.orchestration.local_server import check_server
from prompts.engine.bridge import waiting
from storage.errors import SettingsError, StorageError


def secret_of(block: str, setting: str) -> str:
    """Return the text of a secret block.

    Raises SettingsError where the server does not answer, has no such block, or it holds no text.
    """
    try:
        value = _read(block)
    except (ValueError, httpx.HTTPError, PrefectException, StorageError) as error:
        raise SettingsError(
            setting, block, f"a secret block of the Prefect server ({error})"
        ) from error
    if not isinstance(value, str) or not value:
        raise SettingsError(setting, block, "a secret block that holds a text")
    return value


@waiting
async def _read(block: str) -> object:
    if address := get_current_settings().api.url:
        await check_server(address)
    secret: Secret[str] = await Secret.aload(block)
    return secret.get()
