"""How often does a run say that it is alive, and when does its silence mean that it is dead?"""

HEARTBEAT = 30  # seconds; the most often that Prefect takes
SILENT_AFTER = 75  # seconds: two heartbeats are missing
TAG = "trellis"  # of our deployments' runs: other runs of a server may say less often that they are alive
