"""How is a run tried on a workspace that stays as it is?"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from storage.errors import NoGeneration
from storage.generations import Workspace
from storage.layout import Layout, Pointer


@contextmanager
def rehearsal(workspace: Workspace) -> Iterator[Workspace]:
    """A workspace for the time of the block whose current generation is that of another one; nothing else is shared.

    What is published there is gone after the block. It takes as much room in the folder for temporary files as a
    generation.
    """
    with tempfile.TemporaryDirectory(prefix="trellis-rehearsal-") as folder, ExitStack() as held:
        layout = Layout(Path(folder))
        try:
            number = held.enter_context(workspace.read()).number
        except NoGeneration:
            yield Workspace(layout.root)
            return
        layout.generations.mkdir()
        layout.folder(number).symlink_to(Layout(workspace.root.absolute()).folder(number))
        layout.point(Pointer(current=number, last=number))
        yield Workspace(layout.root)
