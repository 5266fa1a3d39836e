#!/bin/bash
#:
#: name = "database"
#: variety = "basic"
#: timeout = "5m"
#:
#: [resources.db]
#: type = "database"
#: options = { extensions = ["citext"], connections = 2 }
#:
# Needs a site with a type `database`: examples/postgres.toml. The database is this job's alone, and gone after it.

set -o errexit
set -o nounset
set -o pipefail

eval "$(bmat resource env db)"                # PGHOST, PGUSER, PGPASSWORD and so on; also DB_URL and the like

psql --quiet --command "CREATE TABLE people (name citext PRIMARY KEY)"
psql --quiet --command "INSERT INTO people VALUES ('Ada'), ('Grace')"
psql --tuples-only --command "SELECT 'hello ' || name FROM people WHERE name = 'ada'"
psql "$DB_URL" --tuples-only --command "SELECT count(*) FROM people"
