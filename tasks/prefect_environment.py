"""Set what Prefect reads from the environment when it is imported; import this module before it.

Prefect sends usage statistics unless the environment forbids it. Values that the user has set win.
"""

import os

os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# On a busy machine Prefect's own server takes longer to start than the default 20 s.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
