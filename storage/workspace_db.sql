-- What outlives generations and is written by many processes. `used` and times of caches are seconds since 1970.

CREATE TABLE memory (
    source TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, generation INTEGER NOT NULL,
    PRIMARY KEY (source, title)
) WITHOUT ROWID;
CREATE TABLE memory_evidence (source TEXT NOT NULL, title TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (source, title, hash)) WITHOUT ROWID;
CREATE TABLE memory_documents (source TEXT NOT NULL, title TEXT NOT NULL, document TEXT NOT NULL, PRIMARY KEY (source, title, document)) WITHOUT ROWID;
CREATE INDEX memory_by_document ON memory_documents (document);

CREATE TABLE model_answers (key TEXT PRIMARY KEY, value TEXT NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL);
CREATE INDEX model_answers_by_use ON model_answers (used, bytes);
CREATE TABLE embeddings (
    model TEXT NOT NULL, text_hash TEXT NOT NULL, value BLOB NOT NULL, bytes INTEGER NOT NULL, used REAL NOT NULL,
    PRIMARY KEY (model, text_hash)
);
CREATE INDEX embeddings_by_use ON embeddings (used, bytes);

CREATE TABLE runs (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, started TEXT NOT NULL, finished TEXT NOT NULL, state TEXT NOT NULL, summary TEXT NOT NULL
);
