"""Weights as a safetensors file: a length, a JSON header, then the numbers, little-endian float32."""

import json
import struct
from pathlib import Path
from typing import Dict, Tuple

import torch

from atomic_file import write_atomically
from errors import CharlmError

FILE_NAME = "model.safetensors"
LONGEST_HEADER_BYTES = 1 << 20


def save(path: Path, tensors: Dict[str, torch.Tensor], metadata: Dict[str, str]) -> None:
    header: Dict[str, object] = {"__metadata__": metadata}
    body = bytearray()
    for name, tensor in sorted(tensors.items()):
        values = tensor.to(torch.float32).contiguous().flatten().tolist()
        start = len(body)
        body += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [start, len(body)]}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    write_atomically(path, struct.pack("<Q", len(head)) + head + bytes(body))


def load(path: Path) -> Tuple[Dict[str, torch.Tensor], Dict[str, str]]:
    content = path.read_bytes()
    (length,) = struct.unpack_from("<Q", content)
    if length > LONGEST_HEADER_BYTES:
        raise CharlmError(f"{path} is no safetensors file")
    header = json.loads(content[8:8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        values = struct.unpack(f"<{(end - start) // 4}f", content[start:end])
        tensors[name] = torch.tensor(values, dtype=torch.float32).reshape(entry["shape"])
    return tensors, metadata
