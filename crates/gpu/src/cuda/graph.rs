//! CUDA graphs: commands that the driver starts together, by one call instead of one for each.
//!
//! A graph is created for each sequence of kinds and kernels, and kept. When the sequence comes again, only addresses,
//! sizes and arguments are changed in it; that affects later launches of the graph, not those still in the stream.

// SAFETY of the calls of the driver: as in `cuda.rs`. Graphs and nodes are those of a `Graph`, which only the thread
// that holds its stream's lock uses; the driver copies what parameters point at during the call.
#![allow(unsafe_code)]

use super::{Cuda, Request, StreamState, lock};
use crate::device::{Address, Command, Shape};
use crate::error::GpuError;
use cudarc::driver::sys::{self, CUmemorytype_enum::CU_MEMORYTYPE_UNIFIED, CUresult};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{from_ref, null, null_mut};

/// The most graphs that a stream keeps: more than an executor has sequences.
const MOST_GRAPHS: usize = 32;

/// The graphs of a stream.
#[derive(Debug, Default)]
pub struct Graphs {
    made: HashMap<Vec<Kind>, Graph>,
}

/// The properties of a node that cannot change once its graph exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Copy,
    Clear,
    Launch(sys::CUfunction),
}

/// A node of a graph: a command with the driver's handle of its kernel.
#[derive(Clone, Copy)]
enum Node<'a> {
    Copy { from: Address, to: Address, bytes: usize },
    Clear { at: Address, bytes: usize },
    Launch { name: &'static str, function: sys::CUfunction, shape: Shape, argument: &'a [u8] },
}

/// A chain of nodes.
#[derive(Debug)]
struct Graph {
    graph: sys::CUgraph,
    nodes: Vec<sys::CUgraphNode>,
    executable: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: nobody else has them; the driver frees a graph that still runs when it is done.
        unsafe {
            if !self.executable.is_null() {
                let _ = sys::cuGraphExecDestroy(self.executable);
            }
            if !self.graph.is_null() {
                let _ = sys::cuGraphDestroy(self.graph);
            }
        }
    }
}

impl Cuda {
    /// Starts commands as a graph. Returns false where they cannot be one: writes and marks need calls of their own,
    /// and a command that the driver refuses in a graph gives a better error when it is started by itself.
    pub(super) fn start_together(&self, stream: &StreamState, commands: &[Command<'_>]) -> Result<bool, GpuError> {
        let Some(nodes) = self.nodes(commands).filter(|nodes| nodes.len() > 1) else {
            return Ok(false);
        };
        match lock(&stream.graphs).start(self, stream.handle, &nodes) {
            Ok(()) => Ok(true),
            Err(lost @ GpuError::Lost { .. }) => Err(lost),
            Err(_) => Ok(false),
        }
    }

    /// The nodes of commands that can be a graph; commands of 0 bytes have none.
    fn nodes<'a>(&self, commands: &[Command<'a>]) -> Option<Vec<Node<'a>>> {
        let mut nodes = Vec::with_capacity(commands.len());
        for command in commands {
            match *command {
                Command::Copy { bytes: 0, .. } | Command::Clear { bytes: 0, .. } => {}
                Command::Copy { from, to, bytes } => nodes.push(Node::Copy { from, to, bytes }),
                Command::Clear { at, bytes } => nodes.push(Node::Clear { at, bytes }),
                Command::Launch { kernel, shape, argument } => {
                    let function = self.function(kernel, shape.shared).ok()?;
                    nodes.push(Node::Launch { name: kernel.name, function, shape, argument });
                }
                Command::Write { .. } | Command::Load { .. } | Command::Mark => return None,
            }
        }
        Some(nodes)
    }
}

impl Graphs {
    /// Starts the graph of these nodes: the one for their kinds, changed, or a new one where there is none or the
    /// driver refuses the change.
    fn start(&mut self, cuda: &Cuda, stream: sys::CUstream, nodes: &[Node<'_>]) -> Result<(), GpuError> {
        let kinds: Vec<Kind> = nodes.iter().map(Node::kind).collect();
        let graph = match self.made.remove(&kinds).filter(|graph| graph.change(cuda, nodes).is_ok()) {
            Some(graph) => graph,
            None => Graph::new(cuda, nodes)?,
        };
        cuda.check(unsafe { sys::cuGraphLaunch(graph.executable, stream) }, Request::Other("starting a graph"))?;
        if self.made.len() == MOST_GRAPHS {
            self.made.clear();
        }
        self.made.insert(kinds, graph);
        Ok(())
    }
}

impl Graph {
    fn new(cuda: &Cuda, nodes: &[Node<'_>]) -> Result<Graph, GpuError> {
        let request = Request::Other("creating a graph");
        let mut graph = Graph { graph: null_mut(), nodes: Vec::with_capacity(nodes.len()), executable: null_mut() };
        cuda.check(unsafe { sys::cuGraphCreate(&mut graph.graph, 0) }, request)?;
        for node in nodes {
            let added = graph.add(cuda, node)?;
            graph.nodes.push(added);
        }
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut graph.executable, graph.graph, 0) };
        cuda.check(made, request)?;
        Ok(graph)
    }

    /// Adds a node that waits for the last one.
    fn add(&self, cuda: &Cuda, node: &Node<'_>) -> Result<sys::CUgraphNode, GpuError> {
        let (graph, context) = (self.graph, cuda.context.0);
        let (last, count) = self.nodes.last().map_or((null(), 0), |last| (from_ref(last), 1));
        let mut added = null_mut();
        let result = match *node {
            Node::Copy { from, to, bytes } => unsafe {
                sys::cuGraphAddMemcpyNode(&mut added, graph, last, count, &copy_of(from, to, bytes), context)
            },
            Node::Clear { at, bytes } => unsafe {
                sys::cuGraphAddMemsetNode(&mut added, graph, last, count, &clear_of(at, bytes), context)
            },
            Node::Launch { function, shape, argument, .. } => with_launch(function, shape, argument, |launch| unsafe {
                sys::cuGraphAddKernelNode_v2(&mut added, graph, last, count, launch)
            }),
        };
        cuda.check(result, node.request()).map(|()| added)
    }

    /// Gives the nodes other addresses, sizes and arguments.
    fn change(&self, cuda: &Cuda, nodes: &[Node<'_>]) -> Result<(), GpuError> {
        let (executable, context) = (self.executable, cuda.context.0);
        for (&existing, node) in self.nodes.iter().zip(nodes) {
            let result = match *node {
                Node::Copy { from, to, bytes } => unsafe {
                    sys::cuGraphExecMemcpyNodeSetParams(executable, existing, &copy_of(from, to, bytes), context)
                },
                Node::Clear { at, bytes } => unsafe {
                    sys::cuGraphExecMemsetNodeSetParams(executable, existing, &clear_of(at, bytes), context)
                },
                Node::Launch { function, shape, argument, .. } => {
                    with_launch(function, shape, argument, |launch| unsafe {
                        sys::cuGraphExecKernelNodeSetParams_v2(executable, existing, launch)
                    })
                }
            };
            cuda.check(result, node.request())?;
        }
        Ok(())
    }
}

impl Node<'_> {
    fn kind(&self) -> Kind {
        match self {
            Node::Copy { .. } => Kind::Copy,
            Node::Clear { .. } => Kind::Clear,
            Node::Launch { function, .. } => Kind::Launch(*function),
        }
    }

    fn request(&self) -> Request<'static> {
        match self {
            Node::Copy { .. } => Request::Other("a copy"),
            Node::Clear { .. } => Request::Other("clearing memory"),
            Node::Launch { name, .. } => Request::Start(name),
        }
    }
}

/// A copy of one row within the address space that host and device share.
fn copy_of(from: Address, to: Address, bytes: usize) -> sys::CUDA_MEMCPY3D {
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_UNIFIED,
        srcHost: null(),
        srcDevice: from.0,
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_UNIFIED,
        dstHost: null_mut(),
        dstDevice: to.0,
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

/// One row of zeros.
fn clear_of(at: Address, bytes: usize) -> sys::CUDA_MEMSET_NODE_PARAMS {
    sys::CUDA_MEMSET_NODE_PARAMS { dst: at.0, pitch: 0, value: 0, elementSize: 1, width: bytes, height: 1 }
}

/// Calls a function with the parameters of a launch, which point at the argument.
fn with_launch(
    function: sys::CUfunction,
    shape: Shape,
    argument: &[u8],
    call: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult,
) -> CUresult {
    // The driver copies the argument during the call. Its size is that of the kernel's parameter, as `kernels!`
    // declares.
    let mut argument: *mut c_void = argument.as_ptr().cast_mut().cast();
    call(&sys::CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: shape.grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: shape.block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: shape.shared as u32,
        kernelParams: &raw mut argument,
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    })
}
