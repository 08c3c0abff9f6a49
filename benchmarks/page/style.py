"""How does the page look? Light and dark as the reader's system has it; one column on a phone, two on a desk."""

STYLE = """
:root { color-scheme: light dark; --ground: #fbfaf7; --card: #ffffff; --ink: #1f2328; --soft: #5c6670; --line: #dcdfe3;
  --auto: #c2410c; --mode: #2f6690; --base: #8a939c; --good: #1a7f4b;
  --bad: #b3261e; --open: #6b5d00; --mark: #fdeadd; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e6e8ea; --soft: #a0a9b1;
  --line: #363c42; --auto: #fb923c; --mode: #6db3e2; --base: #858f98; --good: #58c48b; --bad: #ff8a80; --open: #dcc75a;
  --mark: #3d2a1c; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: .5rem 0 .75rem; text-wrap: balance; }
h2 { font-size: 1.3rem; margin: 3rem 0 .25rem; padding-top: 1rem; border-top: 1px solid var(--line); }
p, li { max-width: 75ch; }
p { margin: .5rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
code { font: .85em ui-monospace, "SFMono-Regular", Menlo, monospace; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; min-width: 4.6rem; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--card); }
thead th:first-child { min-width: 6.5rem; }
td.best { font-weight: 700; background: var(--mark); }
td.told { text-align: left; color: var(--soft); white-space: normal; min-width: 12rem; }
tr.auto th { color: var(--auto); }
.findings { list-style: none; padding: 0; display: grid; gap: .6rem; margin: 1rem 0; }
.findings { grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); }
.findings li { max-width: none; padding: .6rem .9rem; }
.findings li, figure { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.findings strong { display: block; font-weight: 600; }
.verdict { font-size: .8rem; font-weight: 700; }
.holds { color: var(--good); } .fails { color: var(--bad); } .unknown { color: var(--open); }
.plots { display: grid; gap: 1rem; margin: 1rem 0; }
.plots { grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); }
figure { margin: 0; padding: .9rem; min-width: 0; }
figcaption { font-size: .85rem; color: var(--soft); margin-bottom: .5rem; }
figcaption b { display: block; color: var(--ink); font-size: .95rem; }
svg { display: block; width: 100%; max-width: 480px; height: auto; margin: 0 auto; }
svg text { font: 12px system-ui, "Segoe UI", sans-serif; fill: var(--ink); }
svg .axis { fill: var(--soft); } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .auto { fill: var(--auto); } svg .mode { fill: var(--mode); } svg .base { fill: var(--base); }
svg text.auto { font-weight: 700; }
.key span { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .35em 0 1em; }
.key span:first-child { margin-left: 0; }
.key .auto { background: var(--auto); } .key .mode { background: var(--mode); } .key .base { background: var(--base); }
""".strip().replace("\n", "\n    ")
