-- Tables that generations of earlier versions lack: made where one is opened to be written.

CREATE TABLE IF NOT EXISTS propositions (  -- statements that stand alone; the span is the sentence that makes one
    chunk VARCHAR NOT NULL, ordinal INTEGER NOT NULL, text VARCHAR NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS proposition_inputs (chunk VARCHAR NOT NULL, inputs VARCHAR NOT NULL);
CREATE TABLE IF NOT EXISTS recognized (  -- in pictures; offsets in the text of the part with this ordinal, box in shares of the page
    document VARCHAR NOT NULL, part INTEGER NOT NULL, start_at INTEGER NOT NULL, end_at INTEGER NOT NULL, page INTEGER,
    box DOUBLE[] NOT NULL, confidence DOUBLE NOT NULL
);
