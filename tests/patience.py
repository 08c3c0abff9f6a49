"""How long a test waits for what must happen: long, since none may depend on how fast or busy the machine is."""

PATIENCE = 1_200.0  # seconds
