-- One generation. Rows are replaced in bulk and read in column order, so there are no keys and no indexes:
-- the writers delete before they insert, and checking keys would cost more than writing the rows.
-- Offsets count code points in the document's text, end exclusive.

CREATE TABLE meta (key VARCHAR NOT NULL, value VARCHAR NOT NULL);  -- JSON text; `schema_version` is one of the keys
CREATE TABLE usage (
    step VARCHAR NOT NULL, model VARCHAR NOT NULL, calls BIGINT NOT NULL, input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL, cached_calls BIGINT NOT NULL, cost_usd DOUBLE, seconds DOUBLE NOT NULL
);

-- documents
CREATE TABLE documents (
    id VARCHAR NOT NULL, title VARCHAR NOT NULL, text VARCHAR NOT NULL, language VARCHAR NOT NULL, hash VARCHAR NOT NULL,
    metadata VARCHAR NOT NULL, pages INTEGER[] NOT NULL
);
CREATE TABLE parts (  -- a part is a slice of its document's text; `own_text` is set only where it is not
    document VARCHAR NOT NULL, ordinal INTEGER NOT NULL, source VARCHAR NOT NULL, path VARCHAR NOT NULL, kind VARCHAR NOT NULL,
    title VARCHAR NOT NULL, hash VARCHAR NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, own_text VARCHAR,
    triples VARCHAR NOT NULL, metadata VARCHAR NOT NULL, pages INTEGER[] NOT NULL, tables VARCHAR NOT NULL
);
CREATE TABLE chunks (
    id VARCHAR NOT NULL, document VARCHAR NOT NULL, ordinal INTEGER NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL,
    text VARCHAR NOT NULL, tokens INTEGER NOT NULL, language VARCHAR NOT NULL, title VARCHAR NOT NULL, heading VARCHAR NOT NULL,
    kind VARCHAR NOT NULL
);
CREATE TABLE forgotten (document VARCHAR NOT NULL);
CREATE TABLE postings (chunk VARCHAR NOT NULL, term VARCHAR NOT NULL, tf INTEGER NOT NULL);

-- what was extracted from each chunk, and what failed
CREATE TABLE extractions (chunk VARCHAR NOT NULL, inputs VARCHAR NOT NULL);
CREATE TABLE mentions (
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, name VARCHAR NOT NULL, kind VARCHAR NOT NULL,
    start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, description VARCHAR NOT NULL
);
CREATE TABLE relation_mentions (
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, source VARCHAR NOT NULL, target VARCHAR NOT NULL, predicate VARCHAR NOT NULL,
    start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, description VARCHAR NOT NULL, weight DOUBLE NOT NULL, keys VARCHAR[] NOT NULL
);
CREATE TABLE claim_mentions (
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, subject VARCHAR NOT NULL, object VARCHAR, kind VARCHAR NOT NULL,
    status VARCHAR NOT NULL, since VARCHAR, until VARCHAR, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL,
    description VARCHAR NOT NULL
);
CREATE TABLE fact_mentions (  -- facts of the types of a schema
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, subject VARCHAR NOT NULL, type VARCHAR NOT NULL,
    start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, before INTEGER NOT NULL, after INTEGER NOT NULL, kind VARCHAR NOT NULL,
    single BOOLEAN NOT NULL, value VARCHAR NOT NULL, object VARCHAR, object_kind VARCHAR NOT NULL, number DOUBLE, unit VARCHAR NOT NULL,
    day VARCHAR NOT NULL, yes BOOLEAN, valid_from VARCHAR, valid_to VARCHAR
);
CREATE TABLE left_out_facts (  -- what breaks the schema
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, subject VARCHAR NOT NULL, type VARCHAR NOT NULL, value VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
CREATE TABLE dead_letters (item VARCHAR NOT NULL, step VARCHAR NOT NULL, error VARCHAR NOT NULL, remedy VARCHAR NOT NULL);

-- the graph
CREATE TABLE entities (
    id VARCHAR NOT NULL, name VARCHAR NOT NULL, kind VARCHAR NOT NULL, description VARCHAR NOT NULL,
    mentions INTEGER NOT NULL, degree INTEGER NOT NULL
);
CREATE TABLE aliases (entity VARCHAR NOT NULL, name VARCHAR NOT NULL, reason VARCHAR NOT NULL);
CREATE TABLE edges (  -- `strength` is the sum of the weights of its statements
    id VARCHAR NOT NULL, source VARCHAR NOT NULL, target VARCHAR NOT NULL, predicate VARCHAR NOT NULL,
    description VARCHAR NOT NULL, strength DOUBLE NOT NULL, count INTEGER NOT NULL, keys VARCHAR[] NOT NULL
);
CREATE VIEW relations AS  -- normalised on reading: the strongest may change with any document
    SELECT id, source, target, predicate, description,
           strength / (SELECT coalesce(nullif(max(strength), 0), 1) FROM edges) AS weight, count, keys
    FROM edges;
CREATE TABLE claims (
    id VARCHAR NOT NULL, subject VARCHAR NOT NULL, object VARCHAR, kind VARCHAR NOT NULL, status VARCHAR NOT NULL,
    since VARCHAR, until VARCHAR, description VARCHAR NOT NULL, chunk VARCHAR NOT NULL,
    start_at INTEGER NOT NULL, end_at INTEGER NOT NULL
);
CREATE TABLE facts (  -- `said` is equal where the same is said of a subject
    id VARCHAR NOT NULL, subject VARCHAR NOT NULL, type VARCHAR NOT NULL, said VARCHAR NOT NULL, chunk VARCHAR NOT NULL,
    start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, before INTEGER NOT NULL, after INTEGER NOT NULL, kind VARCHAR NOT NULL,
    single BOOLEAN NOT NULL, value VARCHAR NOT NULL, object VARCHAR, object_kind VARCHAR NOT NULL, number DOUBLE, unit VARCHAR NOT NULL,
    day VARCHAR NOT NULL, yes BOOLEAN, valid_from VARCHAR, valid_to VARCHAR
);
CREATE TABLE entity_occurrences (item VARCHAR NOT NULL, chunk VARCHAR NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL);
CREATE TABLE relation_occurrences (item VARCHAR NOT NULL, chunk VARCHAR NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL);
CREATE TABLE communities (id VARCHAR NOT NULL, level INTEGER NOT NULL, parent VARCHAR, members VARCHAR[] NOT NULL);
CREATE TABLE reports (
    community VARCHAR NOT NULL, level INTEGER NOT NULL, title VARCHAR NOT NULL, summary VARCHAR NOT NULL, rating DOUBLE NOT NULL,
    rating_reason VARCHAR NOT NULL, inputs VARCHAR NOT NULL, stale DOUBLE NOT NULL
);
CREATE TABLE findings (  -- a row for each place of a finding, with the same `summary` and `explanation`
    community VARCHAR NOT NULL, ordinal INTEGER NOT NULL, summary VARCHAR NOT NULL, explanation VARCHAR NOT NULL,
    document VARCHAR NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL
);

-- how names were resolved, so that the next run knows what a change affects
CREATE TABLE resolutions (document VARCHAR NOT NULL, name_key VARCHAR NOT NULL, thing VARCHAR NOT NULL, why VARCHAR NOT NULL);
CREATE TABLE decisions (pair VARCHAR NOT NULL, same BOOLEAN NOT NULL, reason VARCHAR NOT NULL);  -- by a model
CREATE TABLE descriptions (item VARCHAR NOT NULL, inputs VARCHAR NOT NULL);  -- that a model wrote

-- changes by hand, which every next generation takes over
CREATE TABLE edits (id INTEGER NOT NULL, edit VARCHAR NOT NULL);  -- `edit` is JSON text

-- vectors: the truth from which Chroma is built
CREATE TABLE vectors (model VARCHAR NOT NULL, text_hash VARCHAR NOT NULL, vector FLOAT[] NOT NULL);
CREATE TABLE windows (id VARCHAR NOT NULL, chunk VARCHAR NOT NULL, document VARCHAR NOT NULL, text_hash VARCHAR NOT NULL, model VARCHAR NOT NULL);
