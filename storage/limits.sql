-- What all processes started on each server in the last minute. Slots and `until` count from 1970.

CREATE TABLE started (
    server TEXT NOT NULL, slot INTEGER NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (server, slot)
) WITHOUT ROWID;
CREATE TABLE waiting (
    server TEXT NOT NULL, priority INTEGER NOT NULL, until REAL NOT NULL, PRIMARY KEY (server, priority)
) WITHOUT ROWID;
