"""What Prefect takes from the environment when it is imported: settled here, imported before it.

Prefect tells its makers of its use unless the environment forbids it. Nothing changes what the user
has decided.
"""

import os

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# On a busy machine the server that Prefect starts itself takes longer than its 20 s.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
