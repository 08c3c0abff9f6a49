-- What outlives generations. Many processes write it. `used` is in seconds since 1970.

CREATE TABLE IF NOT EXISTS memory_entries (  -- `entry` is JSON text
    source TEXT NOT NULL, title TEXT NOT NULL, generation INTEGER NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (source, title)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_entries_by_title ON memory_entries (title);
CREATE TABLE IF NOT EXISTS memory_index (  -- `kind` is 'key'; earlier versions had others
    source TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (source, title, kind, value)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS memory_index_by_value ON memory_index (kind, value);

CREATE TABLE IF NOT EXISTS cache (
    key TEXT NOT NULL, namespace TEXT NOT NULL, value BLOB NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
    PRIMARY KEY (key, namespace)
);
CREATE INDEX IF NOT EXISTS cache_by_use ON cache (used, bytes);

CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS evaluated_answers (  -- of unfinished evaluations; `answer` is JSON text
    evaluation TEXT NOT NULL, system TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL,
    PRIMARY KEY (evaluation, system, question)
);
CREATE TABLE IF NOT EXISTS evaluations (  -- finished ones; JSON texts, of which `result` holds everything
    number INTEGER PRIMARY KEY, evaluation TEXT NOT NULL, result TEXT NOT NULL
);
-- `watched`, `feedback` and `turn` are JSON text; all turns of a conversation have its `title`, or '' where it was given none.
CREATE TABLE IF NOT EXISTS watched_questions (id TEXT PRIMARY KEY, watched TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS feedback (id TEXT PRIMARY KEY, feedback TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS turns (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, conversation TEXT NOT NULL, title TEXT NOT NULL, turn TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_by_owner ON turns (owner, conversation)
