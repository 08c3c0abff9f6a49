-- Carries memory and cached results over from version 1, whose files may lack the last two of its tables.

CREATE TABLE IF NOT EXISTS memory_basis (
    source TEXT NOT NULL, title TEXT NOT NULL, support TEXT NOT NULL, surroundings TEXT NOT NULL, ranked TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS memory_keys (source TEXT NOT NULL, title TEXT NOT NULL, key TEXT NOT NULL);

INSERT INTO memory_entries SELECT source, title, generation, json_object(
    'source', source, 'title', title, 'content', content, 'generation', generation,
    'evidence', json((SELECT json_group_array(hash) FROM (
        SELECT hash FROM memory_evidence AS e WHERE e.source = m.source AND e.title = m.title ORDER BY hash))),
    'documents', json((SELECT json_group_array(document) FROM (
        SELECT document FROM memory_documents AS d WHERE d.source = m.source AND d.title = m.title ORDER BY document))),
    'support', coalesce(b.support, 'none'), 'surroundings', coalesce(b.surroundings, ''),
    'ranked', json((SELECT json_group_array(json_extract(value, '$[0]')) FROM json_each(coalesce(b.ranked, '[]'))))
) FROM memory AS m LEFT JOIN memory_basis AS b USING (source, title);
INSERT INTO memory_index
    SELECT source, title, 'evidence', hash FROM memory_evidence
    UNION SELECT source, title, 'document', document FROM memory_documents
    UNION SELECT source, title, 'key', key FROM memory_keys;
INSERT INTO cache
    SELECT key, 'answers', CAST(value AS BLOB), bytes, used FROM model_answers
    UNION ALL SELECT text_hash, 'embeddings ' || model, value, bytes, used FROM embeddings;

DROP TABLE memory;
DROP TABLE memory_evidence;
DROP TABLE memory_documents;
DROP TABLE memory_basis;
DROP TABLE memory_keys;
DROP TABLE model_answers;
DROP TABLE embeddings;
-- Whole answers and structures, which earlier ones kept: what was made of a text must not outlive it.
DROP TABLE IF EXISTS answer_documents;
DROP TABLE IF EXISTS answers;
DROP TABLE IF EXISTS structures
