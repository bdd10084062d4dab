"""Valid files, and damaged or malicious versions of them, determined by a seed."""

import sqlite3

import h5py
import numpy as np

ODD_VALUES = (
    None,
    True,
    -1,
    0,
    7,
    2**31,
    2**63 - 1,
    -(2**63),
    10**30,
    1e-320,
    1e30,
    1e308,
    np.nan,
    np.inf,
    -np.inf,
    "",
    "text",
    "caf\udce9",
    b"",
    b"\x00\xff\xfe",
    b"\x01" * 17,
    "[" * 5000,
)


def change_bytes(data, rng):
    """Flip, cut, repeat, zero or exchange parts of a file."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        size = len(changed)
        start = int(rng.integers(0, max(size, 1)))
        length = int(2 ** rng.uniform(0, 10))
        kind = rng.integers(6)
        if kind == 0:
            for place in rng.integers(0, max(size, 1), 8) if size else ():
                changed[place] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del changed[start:]
        elif kind == 2:
            del changed[start : start + length]
        elif kind == 3:
            changed[start:start] = changed[start : start + length]
        elif kind == 4:
            changed[start : start + length] = bytes(len(changed[start : start + length]))
        else:
            changed[start : start + length] = rng.bytes(len(changed[start : start + length]))
    return bytes(changed)


def odd_array(array, rng):
    """Return an array with another dtype, shape or values."""
    array = np.asarray(array)
    kind = rng.integers(9)
    if kind == 0 and array.dtype.kind in "fiu":
        changed = array.astype(float).copy()
        if changed.size:
            changed.flat[int(rng.integers(changed.size))] = rng.choice([np.nan, np.inf, -1e300, 1e39, 1e5, -1.0])
        return changed
    if kind == 1:
        return array.ravel()[: int(rng.integers(array.size + 1))]
    if kind == 2:
        return array[None]
    if kind == 3:
        return array.astype(str)
    if kind == 4:
        return np.zeros(array.shape, rng.choice(["c16", "?", "M8[s]", "V3", "S2", "f2", "i8", "u8"]))
    if kind == 5:
        return np.zeros((0, *array.shape[1:]))
    if kind == 6 and array.dtype.kind in "fiu":
        return array.astype(float) * 10.0 ** rng.uniform(-30, 30)
    if kind == 7:
        return np.array(rng.choice([-1.0, 0.0, np.nan, 2.0**63, 1e300]))
    return array.T


def change_npz(path, rng):
    """Exchange, rename or remove arrays."""
    with np.load(path) as opened:
        arrays = dict(opened)
    for _ in range(int(rng.integers(1, 3))):
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        array, kind = arrays.pop(name), rng.integers(8)
        if kind == 0:
            arrays[name + "x"] = array
        elif kind == 1:
            arrays[name] = np.array([{}, None], object)
        elif kind > 2 or not arrays:
            arrays[name] = odd_array(array, rng)
    np.savez(path, **arrays)


def change_h5(path, rng):
    """Exchange, link or remove datasets, groups and attributes."""
    with h5py.File(path, "a") as file:
        names = []
        file.visit(names.append)
        for _ in range(int(rng.integers(1, 3))):
            name = names[int(rng.integers(len(names)))]
            try:
                _ = file[name]
            except KeyError:  # the first change removed it, or made it a broken link
                continue
            array = file[name][()] if isinstance(file[name], h5py.Dataset) else np.zeros(3)
            parts = dict(file[name].attrs)
            if parts and rng.random() < 0.5:
                attribute = sorted(parts)[int(rng.integers(len(parts)))]
                file[name].attrs[attribute] = rng.choice([-1.0, np.nan, 2.0**62, 1e300])
                continue
            del file[name]
            put_odd(file, name, array, rng)


def put_odd(file, name, array, rng):
    """Replace an array by something else."""
    kind = rng.integers(8)
    if kind == 0:
        file[name] = h5py.SoftLink("/" + name.rpartition("/")[0])
    elif kind == 1:
        file[name] = h5py.ExternalLink("other.h5", "/")
    elif kind == 2:
        file.create_group(name)["x"] = 1
    elif kind == 3:
        file[name] = h5py.Empty("f8")
    elif kind == 4:
        file.create_dataset(name, data=["a", "bc"], dtype=h5py.string_dtype())
    elif kind > 5:
        changed = odd_array(array, rng) if not isinstance(array, bytes) else np.float64(1e300)
        file[name] = np.char.encode(changed, "utf-8", "replace") if changed.dtype.kind == "U" else _storable(changed)


def _storable(array):
    return np.zeros(3) if array.dtype.kind in "MO" else array


def change_database(path, rng):
    """Put odd values into cells, or remove rows and columns."""
    connection = sqlite3.connect(path)
    for _ in range(int(rng.integers(1, 4))):
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = tables[int(rng.integers(len(tables)))]
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        column = columns[int(rng.integers(len(columns)))]
        value = ODD_VALUES[int(rng.integers(len(ODD_VALUES)))]
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        command = rng.choice(
            [
                f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid % 3 = 0",
                f"UPDATE OR IGNORE {table} SET {column} = CAST(? AS TEXT) WHERE rowid % 2 = 0",
                f"DELETE FROM {table} WHERE rowid % 4 = 1 AND ? IS NOT 3",
                f"UPDATE OR IGNORE {table} SET {column} = -{column} WHERE ? IS NOT 3",
            ],
            p=[0.5, 0.3, 0.1, 0.1],
        )
        try:
            connection.execute(command, (value,))
        except (sqlite3.Error, OverflowError):
            continue
    connection.commit()
    connection.close()


def change_text(text, rng):
    """Exchange, remove and repeat words and lines."""
    words = text.split(" ")
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(words)))
        odd = ("nan", "inf", "1e999", "9" * 5000, "-", "é", "\x00", "1_0", "0x1", "\n", "#", "[" * 3000, "{}", '"', ",")
        kind = rng.integers(3)
        if kind == 0:
            words[place] = odd[int(rng.integers(len(odd)))]
        elif kind == 1:
            words.insert(place, words[int(rng.integers(len(words)))])
        elif len(words) > 1:
            del words[place]
    return " ".join(words)
