"""Whatever is waited for outside of the program has a row in docs/reliability.md, which says for how long at most."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Under "Who waits for what": the beginning of a row, and what the code calls to wait so. None: for what is our own, or
# ends by itself.
WAITS = {
    None: "AsyncExitStack TaskGroup aclosing anext answer_part answering changing enter_async_context function gather "
    "handle_request list_tools httpx.ReadTimeout httpx.Timeout rate shield sleep task timeout to_thread wait_for "
    "wrap_future",
    "an answer of a model": "AsyncLMRouter",
    "a provider's batch": "batch_results batch_status batch_submit",
    "a served embedding model": "httpx.Client",
    "an index run of the service": "create_subprocess_exec",
    "a Prefect server to answer, before": "AsyncClient httpx.AsyncClient httpx.get",
    "a Prefect server of our own": "subprocess.Popen",
    "a request of Prefect's": "PrefectClient aadd_deployment aapply acreate aload api_healthcheck aresult astop "
    "ato_deployment create_automation create_flow_run_from_deployment get_client "
    "get_scheduled_flow_runs_for_deployments pause_deployment propose_state rate_limit read_artifacts "
    "read_automations_by_name read_deployment_by_name read_flow_run read_flow_runs read_work_pool run_flow_async "
    "set_flow_run_state update_artifact update_automation update_deployment update_flow_run update_flow_run_labels",
    "another process that writes": "sqlite3.connect duckdb.connect",
    "another writer of the workspace": "fcntl.flock",
    "a request to the service": "_app _receive",
}
MODULES = {"duckdb", "fcntl", "httpx", "requests", "select", "sqlite3", "subprocess", "urllib"}


def waits() -> set[str]:
    """What is awaited that is not ours, by its last name, and calls of modules that block, by module and name."""
    rooms = [ROOT / room for room in ("flows", "tasks", "prompts", "storage")]
    nodes = [node for room in rooms for path in room.rglob("*.py") for node in ast.walk(ast.parse(path.read_bytes()))]
    ours = {row.name for row in nodes if isinstance(row, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    awaited = [row.value for row in nodes if isinstance(row, ast.Await)]
    awaited += [item.context_expr for row in nodes if isinstance(row, ast.AsyncWith) for item in row.items]
    names = {ast.unparse(row.func).rpartition(".")[2] for row in awaited if isinstance(row, ast.Call)} - ours
    calls = {
        ast.unparse(row.func) for row in nodes if isinstance(row, ast.Call) and isinstance(row.func, ast.Attribute)
    }
    return names | {name for name in calls if name.partition(".")[0] in MODULES}


def test_what_is_waited_for_outside_has_a_bound_that_is_told() -> None:
    known = {name for names in WAITS.values() for name in names.split()}
    assert waits() == known
    told = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").partition("## Who waits for what")[2]
    assert not [row for row in WAITS if row is not None and f"\n| {row}" not in told]
