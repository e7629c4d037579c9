"""Rows of a large table whose text is not in another one: by a filter as a function of the engine, and by the engine's own anti-join.

    python benches/membership.py FOLDER [ROWS]

prints the rows that are left, CPU seconds, seconds and peak memory of each query in a process of its own. Of the keys, half are in the table.
Needs duckdb, polars, datafusion and pyarrow.
"""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python/recipes"))

KEYS = 200_000, 20_000_000
# Of the memory of DuckDB and DataFusion; Polars has none.
LIMIT = 1 << 30


def make(folder: pathlib.Path, rows: int) -> None:
    """The table, January's keys and their filters; what is there stays."""
    import duckdb

    from bloomline import BloomFilter

    def copy(name: str, query: str) -> None:
        if not (folder / name).exists():
            connection = duckdb.connect(config={"memory_limit": "4GB"})
            connection.execute(f"COPY ({query}) TO '{folder}/part' (FORMAT parquet)")
            (folder / "part").rename(folder / name)

    url = "'https://example.org/' || md5(i::VARCHAR) || '/page.html' AS url"
    copy("visits.parquet", f"SELECT {url}, i AS day FROM range({rows}) t(i)")
    for keys in KEYS:
        # Every second key is one of the table's.
        copy(f"{keys}.parquet", f"SELECT {url} FROM (SELECT CASE WHEN k % 2 = 0 THEN k ELSE -k END AS i FROM range({keys}) t(k))")
        path = folder / f"{keys}.bloom"
        if not path.exists():
            seen = BloomFilter(keys, 1e-6)
            for batch in duckdb.sql(f"FROM '{folder}/{keys}.parquet'").to_arrow_reader():
                seen.add_rows(batch)
            seen.save(path)


def count(folder: pathlib.Path, engine: str, by: str, keys: str) -> int:
    """The rows of the table that January lacks."""
    from bloomline import BloomFilter

    visits, january = folder / "visits.parquet", folder / f"{keys}.parquet"
    seen = BloomFilter.map(folder / f"{keys}.bloom") if by == "filter" else None
    if engine == "polars":
        import polars as pl
        from with_polars import is_in

        frame = pl.scan_parquet(visits)
        new = frame.filter(~is_in(seen, "url")) if seen else frame.join(pl.scan_parquet(january), on="url", how="anti")
        return int(new.select(pl.len()).collect(engine="streaming").item())
    where = "NOT in_january(url)" if seen else "NOT EXISTS (SELECT 1 FROM january WHERE january.url = visits.url)"
    query = f"SELECT count(*) AS rows FROM visits WHERE {where}"
    if engine == "duckdb":
        import duckdb
        import with_duckdb

        connection = duckdb.connect(config={"memory_limit": f"{LIMIT}B", "temp_directory": str(folder / "spilled")})
        for name, path in {"visits": visits, "january": january}.items():
            connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
        if seen:
            with_duckdb.register(connection, "in_january", seen)
        return int(connection.sql(query).fetchall()[0][0])
    import with_datafusion
    from datafusion import RuntimeEnvBuilder, SessionContext

    context = SessionContext(runtime=RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(LIMIT))
    context.register_parquet("visits", str(visits))
    context.register_parquet("january", str(january))
    if seen:
        with_datafusion.register(context, "in_january", seen)
    return int(context.sql(query).to_pydict()["rows"][0])


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 3:
        print(count(folder, *sys.argv[2:]))
        return
    make(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 64_000_000)
    for keys in KEYS:
        for engine in "duckdb", "polars", "datafusion":
            for by in "filter", "join":
                print(f"{keys} {engine} {by}: ", end="", flush=True)
                started = time.monotonic()
                child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, __file__, str(folder), engine, by, str(keys)])
                _, status, used = os.wait4(child, 0)
                took = time.monotonic() - started
                print(f"  status {status}, CPU {used.ru_utime + used.ru_stime:.1f} s, {took:.1f} s, {used.ru_maxrss / 1024:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
