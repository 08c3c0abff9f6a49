"""What is each part of the search worth? The same questions with one part left out."""

from storage.records import Mode
from tasks.retrieve.switches import Switches

WITHOUT: dict[str, Switches] = {
    "-words": Switches(words=False),
    "-meaning": Switches(meaning=False),
    "-PageRank": Switches(walk=False),
    "-bridges": Switches(bridges=False),
    "-sets": Switches(sets=False),
}
# LightRAG's levels, each by itself and both, without the search by words and walk.
LEVELS: dict[str, Mode] = {"-High": "low", "-Low": "high", "hybrid": "hybrid"}
