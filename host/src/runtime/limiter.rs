//! Bounds memory and tables summed over a whole component, which wasmtime's own `StoreLimits` bounds one by one.

use crate::audit::Trail;
use crate::limits::Limits;
use std::sync::Arc;
use wasmtime::ResourceLimiter;

/// Counts what a store has grown to.
pub struct Limiter {
    memory: usize,
    memory_limit: usize,
    elements: usize,
    elements_limit: usize,
    instances: usize,
    /// Learns the memory, since a call that is given up takes its store with it.
    trail: Arc<Trail>,
    /// What was refused last, to explain the trap that usually follows.
    pub refused: Option<String>,
}

impl Limiter {
    pub(super) fn new(limits: &Limits, trail: Arc<Trail>) -> Self {
        Self {
            memory: 0,
            memory_limit: (limits.memory_mib as usize) << 20,
            elements: 0,
            elements_limit: limits.table_elements as usize,
            instances: limits.instances as usize,
            trail,
            refused: None,
        }
    }

    /// Bytes of linear memory now; memories never shrink, so also the peak.
    pub fn memory(&self) -> usize {
        self.memory
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let sum = self.memory.saturating_sub(current).saturating_add(desired);
        if sum > self.memory_limit {
            self.refused = Some(format!("memory limit of {} MiB (limits: memory_mib)", self.memory_limit >> 20));
            return Ok(false);
        }
        self.memory = sum;
        self.trail.has_memory(sum);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let sum = self.elements.saturating_sub(current).saturating_add(desired);
        if sum > self.elements_limit {
            self.refused = Some(format!("limit of {} table elements (limits: table_elements)", self.elements_limit));
            return Ok(false);
        }
        self.elements = sum;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
