"""`trellis clean`: free the room of what is no longer needed, and of nothing that a reader holds."""

from argparse import Namespace

from flows.cli.opening import runtime_of
from flows.cli.screen import Screen
from flows.cli.sizes import in_words
from flows.runtime import open_caches
from storage.layout import size_of


def clean(options: Namespace, screen: Screen) -> int:
    """Clean up, and say what it freed. Raises WorkspaceLocked while a run is writing, NoGeneration."""
    runtime = runtime_of(options)
    workspace, caches = runtime.workspace, open_caches(runtime.settings, runtime.workspace)
    places = {workspace.root, runtime.settings.cache_dir or workspace.root}
    before = sum(map(size_of, places))
    removed = workspace.clean(options.keep)
    if options.vectors:
        workspace.rebuild_vectors()
    if options.caches:
        caches.forget_caches()
    for store in (workspace.side, caches)[: len(places)]:
        store.compact()
    freed = max(before - sum(map(size_of, places)), 0)
    if screen.as_json:
        screen.json({"removed": removed, "freed_bytes": freed})
        return 0
    gone = f"generations {', '.join(map(str, removed))}" if removed else "no generation"
    screen.line(f"Removed {gone}; freed {in_words(freed)}", style="bold green")
    kept = [f"{one.number}{' (damaged)' if one.damage else ''}" for one in workspace.generations()]
    screen.line(f"kept: {', '.join(kept)}", indent=2)
    if aside := workspace.set_aside():
        screen.line(f"set aside, never published: {', '.join(map(str, aside))}", indent=2, style="yellow")
    return 0
