"""Bloom filters that behave like a set: see BloomFilter, and Filter for the methods of all. `dedup` is for frames and files."""

from bloomline._bloomline import (
    AtomicBloomFilter,
    AtomicScalableBloomFilter,
    BloomFilter,
    Filter,
    MappedBloomFilter,
    RedisBloomFilter,
    RedisFilterMetrics,
    RedisFilterStats,
    RotatingBloomFilter,
    ScalableBloomFilter,
    __version__,
)
from bloomline._files import dedup

__all__ = [
    "AtomicBloomFilter",
    "AtomicScalableBloomFilter",
    "BloomFilter",
    "Filter",
    "MappedBloomFilter",
    "RedisBloomFilter",
    "RedisFilterMetrics",
    "RedisFilterStats",
    "RotatingBloomFilter",
    "ScalableBloomFilter",
    "__version__",
    "dedup",
]
