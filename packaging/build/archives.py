"""Reproducible archives: entries in the order of the caller, with one time and one owner."""
import gzip
import io
import os
import tarfile


def epoch():
    """Returns the time of every entry: SOURCE_DATE_EPOCH."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def tar(entries, owner=0):
    """Returns a tar archive of entries: (name, bytes or None for a folder, mode[, owner])."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data, mode, *own in entries:
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = mode, epoch()
            info.uid = info.gid = own[0] if own else owner
            if data is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(data):
    """Compresses with gzip, without time and name."""
    return gzip.compress(data, 9, mtime=0)


def read(path):
    with open(path, "rb") as file:
        return file.read()
