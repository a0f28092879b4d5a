//! One body of tests for every device: the simulator, and the driver where there is one.
//!
//! Tests that only a driver can run are ignored without one. With `LANNER_REQUIRE_GPU=1` they run, and a driver that
//! does not open is a failure.

use lanner_gpu::cuda::Cuda;
use lanner_gpu::device::{Address, Command, Device, Shape, Side, Stream};
use lanner_gpu::error::GpuError;
use lanner_gpu::faulty::{Fault, Faulty};
use lanner_gpu::kernel::{Argument, Kernel, Module, TypedKernel};
use lanner_gpu::memory::{Gpu, Memory, Pinned};
use lanner_gpu::simulator::Simulator;
use requirements::{needs, test};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use trial::TrialArguments;

#[path = "../../engine/tests/requirements/mod.rs"]
mod requirements;
mod trial;

const BUDGET: u64 = 1 << 30;
const FIRST: Stream = Stream(0);
const SECOND: Stream = Stream(1);
const SHARED_BYTES: usize = 128;

fn main() -> ExitCode {
    let has_driver = is_gpu_required() || Cuda::open(0).is_ok();
    let on_any_device = [
        test(numbers_are_summed_up),
        test(lanes_of_a_warp_meet_in_parts),
        test(commands_of_a_stream_come_one_after_the_other),
        test(commands_given_together_do_what_they_do_one_by_one),
        test(sequences_of_several_kinds_take_turns),
        test(a_copy_of_a_sequence_may_go_elsewhere_the_next_time),
        test(any_commands_may_be_given_together),
        test(a_launch_that_is_refused_among_others_is_named),
        test(a_fault_at_any_command_of_several_is_reported),
        test(what_is_written_is_taken_before_submit_returns),
        test(a_wait_returns_the_times_between_marks),
        test(threads_share_a_device),
        test(memory_is_counted_and_given_back_to_the_budget),
        test(a_device_out_of_memory_refuses_and_goes_on),
        test(a_block_may_have_more_shared_memory_than_usual),
        test(a_shape_that_no_device_has_does_not_start),
        test(what_a_kernel_tells_the_host_is_there_when_it_says_so),
        test(a_kernel_that_is_not_there_does_not_start),
        test(a_fault_at_any_call_is_reported_and_costs_no_memory),
    ];
    let on_simulator = [
        test(a_kernel_that_goes_wrong_among_others_is_reported_by_the_wait),
        test(a_lost_update_shows_for_some_seed),
        test(a_missing_barrier_shows_for_some_seed),
        test(a_wrong_kernel_fails_with_its_cause),
    ];
    let on_driver = [test(an_illegal_access_costs_one_process_its_device), test(a_graph_is_made_once_and_then_changed)];
    // The driver may be missing even where nothing else may: most machines have no GPU.
    let on_driver = on_driver.map(|test| test.with_ignored_flag(!has_driver));
    let on_any_device = on_any_device.map(|test| needs(cfg!(simulator) || has_driver, test));
    let on_simulator = on_simulator.map(|test| needs(cfg!(simulator), test));
    let anywhere = [test(trial::the_header_is_what_rust_generates)];
    requirements::run(on_any_device.into_iter().chain(on_simulator).chain(on_driver).chain(anywhere))
}

fn is_gpu_required() -> bool {
    std::env::var("LANNER_REQUIRE_GPU").is_ok_and(|value| value == "1")
}

/// Opens a device anew.
type Open = Box<dyn Fn() -> Arc<dyn Device>>;

/// The simulator under these seeds, and the driver.
fn devices(seeds: Range<u64>) -> Vec<Open> {
    let mut devices = Vec::<Open>::new();
    if cfg!(simulator) {
        devices.extend(seeds.map(|seed| Box::new(move || simulator(seed)) as Open));
    }
    if is_gpu_required() || Cuda::open(0).is_ok() {
        devices.push(Box::new(|| Arc::new(driver())));
    }
    assert!(!devices.is_empty(), "there is neither a simulator nor a GPU");
    devices
}

fn simulator(seed: u64) -> Arc<dyn Device> {
    Arc::new(Simulator::new(seed))
}

fn driver() -> Cuda {
    Cuda::open(0).unwrap_or_else(|error| panic!("this test needs a GPU: {error}"))
}

fn gpu(open: &Open) -> Gpu {
    Gpu::new(open(), BUDGET)
}

/// A kernel to run on numbers.
#[derive(Clone, Copy)]
struct Trial<'a> {
    kernel: &'a TypedKernel<TrialArguments>,
    shape: Shape,
    input: &'a [u32],
    n: u32,
    stream: Stream,
}

/// The results of a kernel: a number for each thread, and one more.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    output: Vec<u32>,
    total: u32,
}

struct Buffers {
    input: Memory,
    /// The output, then the total.
    output: Memory,
    back: Pinned,
}

impl Trial<'_> {
    fn threads(&self) -> usize {
        self.shape.grid as usize * self.shape.block as usize
    }

    fn run(&self, gpu: &Gpu) -> Result<Outcome, GpuError> {
        let bytes = (self.threads() + 1) * size_of::<u32>();
        let input = gpu.allocate(size_of_val(self.input))?;
        let buffers = Buffers { input, output: gpu.allocate(bytes)?, back: gpu.pin(bytes)? };
        let submitted = self.submit(gpu, &buffers);
        // Buffers must live until the stream is done with them, even where a command or a wait was refused.
        let waited = gpu.wait(self.stream);
        if waited.is_err() {
            let _ = gpu.wait(self.stream);
        }
        submitted.and(waited)?;
        let mut output = numbers_of(&buffers.back);
        let total = output.pop().expect("the total");
        Ok(Outcome { output, total })
    }

    fn submit(&self, gpu: &Gpu, buffers: &Buffers) -> Result<(), GpuError> {
        let Buffers { input, output, back } = buffers;
        let total = output.address().plus(self.threads() * size_of::<u32>());
        let (input, output, bytes) = (input.address(), output.address(), output.bytes());
        let argument = TrialArguments { input, output, total, n: self.n, reserved: 0 };
        gpu.submit(self.stream, Command::Write { from: &bytes_of(self.input), to: input })?;
        gpu.submit(self.stream, Command::Clear { at: output, bytes })?;
        gpu.launch(self.stream, self.kernel, self.shape, &argument)?;
        gpu.submit(self.stream, Command::Copy { from: output, to: back.address(), bytes })
    }
}

fn bytes_of(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn numbers_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|chunk| u32::from_ne_bytes(chunk.try_into().expect("four bytes"))).collect()
}

fn shape(grid: u32, block: u32) -> Shape {
    Shape { grid, block, shared: SHARED_BYTES }
}

/// A kernel on no numbers.
fn trial(kernel: &TypedKernel<TrialArguments>, shape: Shape, n: u32) -> Trial<'_> {
    Trial { kernel, shape, input: &[], n, stream: FIRST }
}

/// A sum of 300 numbers by three blocks.
fn sum(input: &[u32; 300]) -> Trial<'_> {
    Trial { kernel: &trial::SUM, shape: shape(3, 128), input, n: 300, stream: FIRST }
}

fn some_numbers() -> [u32; 300] {
    std::array::from_fn(|i| (i * i) as u32)
}

fn assert_sums(gpu: &Gpu) {
    let input = some_numbers();
    let outcome = sum(&input).run(gpu).expect("a sum");
    let of_blocks: Vec<u32> = input.chunks(128).map(|chunk| chunk.iter().sum()).collect();
    assert_eq!(outcome.output[..3], of_blocks, "{}", gpu.properties().name);
    assert_eq!(outcome.total, input.iter().sum::<u32>(), "{}", gpu.properties().name);
}

fn numbers_are_summed_up() {
    for open in devices(0..20) {
        assert_sums(&gpu(&open));
    }
}

fn lanes_of_a_warp_meet_in_parts() {
    for open in devices(0..20) {
        let outcome = trial(&trial::PARTIAL, shape(1, 64), 5).run(&gpu(&open)).expect("a run");
        let first = |lane: u32| if lane < 16 { lane + (lane ^ 1) } else { lane };
        let expected: Vec<u32> = (0..64).map(|i| i % 32).map(|lane| first(lane) + first(lane ^ 16) + 5).collect();
        assert_eq!(outcome.output, expected);
    }
}

fn commands_of_a_stream_come_one_after_the_other() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let memory = gpu.allocate(16).expect("memory");
        let back = gpu.pin(48).expect("pinned memory");
        let (at, to) = (memory.address(), back.address());
        for command in [
            Command::Write { from: &[7; 16], to: at },
            Command::Copy { from: at, to, bytes: 16 },
            Command::Clear { at: at.plus(4), bytes: 8 },
            Command::Copy { from: at, to: to.plus(16), bytes: 16 },
            Command::Write { from: &[9], to: at.plus(15) },
            Command::Copy { from: at.plus(1), to: at, bytes: 0 },
            Command::Write { from: &[], to: at },
            Command::Clear { at, bytes: 0 },
            Command::Copy { from: at, to: to.plus(32), bytes: 16 },
        ] {
            gpu.submit(FIRST, command).expect("a command");
        }
        gpu.wait(FIRST).expect("a wait");
        assert_eq!(back[..16], [7; 16]);
        assert_eq!(back[16..32], [7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
        assert_eq!(back[32..], [7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 9]);
    }
}

/// Memory for sums whose commands are given together.
struct SumBuffers {
    input: Pinned,
    /// The input, then the output.
    memory: Memory,
    back: Pinned,
}

/// Bytes of the input, and of the output.
const SUM_BYTES: usize = 8 << 10;

impl SumBuffers {
    fn new(gpu: &Gpu) -> Result<SumBuffers, GpuError> {
        Ok(SumBuffers { input: gpu.pin(SUM_BYTES)?, memory: gpu.allocate(2 * SUM_BYTES)?, back: gpu.pin(SUM_BYTES)? })
    }

    /// Sums numbers up as `trial` does, with all addresses `further` bytes further on.
    fn run(&mut self, gpu: &Gpu, trial: &Trial<'_>, further: usize) -> Result<Outcome, GpuError> {
        let (uploaded, bytes) = (bytes_of(trial.input), (trial.threads() + 1) * size_of::<u32>());
        self.input[further..further + uploaded.len()].copy_from_slice(&uploaded);
        self.back.fill(0xA5);
        let [from, to] = [self.input.address(), self.back.address()].map(|address| address.plus(further));
        let [input, output] = [0, SUM_BYTES].map(|start| self.memory.address().plus(start + further));
        let total = output.plus(bytes - size_of::<u32>());
        let argument = TrialArguments { input, output, total, n: trial.n, reserved: 0 };
        let (kernel, shape, argument) = (&trial.kernel.kernel, trial.shape, argument.bytes());
        let commands = [
            Command::Copy { from, to: input, bytes: uploaded.len() },
            Command::Clear { at: output, bytes },
            Command::Launch { kernel, shape, argument },
            Command::Copy { from: output, to, bytes },
        ];
        let submitted = gpu.submit_all(trial.stream, &commands);
        let waited = gpu.wait(trial.stream);
        if waited.is_err() {
            let _ = gpu.wait(trial.stream);
        }
        submitted.and(waited)?;
        let mut output = numbers_of(&self.back[further..further + bytes]);
        let total = output.pop().expect("the total");
        Ok(Outcome { output, total })
    }
}

fn commands_given_together_do_what_they_do_one_by_one() {
    for open in devices(0..3) {
        let gpu = gpu(&open);
        let mut buffers = SumBuffers::new(&gpu).expect("memory");
        for round in 0..60u32 {
            let input: Vec<u32> = (0..1 + round * 37 % 700).map(|i| i * i + round).collect();
            let (n, blocks) = (input.len() as u32, (input.len() as u32).div_ceil(128));
            let shape = Shape { grid: blocks, block: 128, shared: [128, 1024, 64 << 10][round as usize % 3] };
            let stream = [FIRST, SECOND][round as usize / 2 % 2];
            let trial = Trial { kernel: &trial::SUM, shape, input: &input, n, stream };
            let together = buffers.run(&gpu, &trial, round as usize % 5 * 16).expect("a sum");
            assert_eq!(together, trial.run(&gpu).expect("the same sum"), "round {round}, {}", gpu.properties().name);
            assert_eq!(together.total, input.iter().fold(0, |sum: u32, number| sum.wrapping_add(*number)));
        }
    }
}

fn sequences_of_several_kinds_take_turns() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let (memory, mut back) = (gpu.allocate(64).expect("memory"), gpu.pin(64).expect("pinned memory"));
        let (at, to) = (memory.address(), back.address());
        let copy = |from: usize, to: Address| Command::Copy { from: at.plus(from), to, bytes: 4 };
        let clear = |from: usize| Command::Clear { at: at.plus(from), bytes: 4 };
        // First more than a device keeps, then a few that repeat.
        for (round, most) in [(0u8, 9), (1, 3), (2, 3)] {
            for cleared in 0..6 {
                for copied in 1..most {
                    gpu.submit(FIRST, Command::Write { from: &[round + 1; 64], to: at }).expect("a write");
                    back.fill(0xA5);
                    let mut commands: Vec<Command<'_>> = (0..cleared).map(|place| clear(4 * place)).collect();
                    // Between places of the device, and to the host.
                    commands.extend((0..copied).map(|place| copy(4 * place, at.plus(4 * (place + 1)))).rev());
                    commands.extend((0..copied).map(|place| copy(4 * place, to.plus(4 * place))));
                    gpu.submit_all(FIRST, &commands).expect("commands");
                    gpu.wait(FIRST).expect("a wait");
                    let mut expected = [round + 1; 64];
                    expected[..4 * cleared].fill(0);
                    expected.copy_within(..4 * copied, 4);
                    assert_eq!(back[..4 * copied], expected[..4 * copied], "{cleared} cleared, {copied} copied");
                    assert!(back[4 * copied..].iter().all(|&byte| byte == 0xA5));
                }
            }
        }
    }
}

fn a_copy_of_a_sequence_may_go_elsewhere_the_next_time() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let (memory, mut host) = (gpu.allocate(32).expect("memory"), gpu.pin(32).expect("pinned memory"));
        let (device, pinned) = (memory.address(), host.address());
        let places = [device, device.plus(16), pinned, pinned.plus(16)];
        for round in 0..3u8 {
            for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                host.fill(9);
                gpu.submit(FIRST, Command::Write { from: &[round; 32], to: device }).expect("a write");
                let copy = Command::Copy { from: places[from], to: places[to], bytes: 16 };
                let clear = Command::Clear { at: places[from], bytes: 8 };
                gpu.submit_all(FIRST, &[clear, copy]).expect("commands");
                let mut expected = [round, round, 9, 9].map(|byte| [byte; 16]);
                expected[from][..8].fill(0);
                expected[to] = expected[from];
                gpu.wait(FIRST).expect("a wait");
                assert_eq!(host[..], expected[2..].concat(), "from {from} to {to}");
                gpu.submit(FIRST, Command::Copy { from: device, to: pinned, bytes: 32 }).expect("a copy");
                gpu.wait(FIRST).expect("a wait");
                assert_eq!(host[..], expected[..2].concat(), "from {from} to {to}");
            }
        }
    }
}

fn any_commands_may_be_given_together() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let (memory, mut back) = (gpu.allocate(16).expect("memory"), gpu.pin(16).expect("pinned memory"));
        let (at, to) = (memory.address(), back.address());
        let (clear, nothing) = (Command::Clear { at: at.plus(4), bytes: 8 }, Command::Clear { at, bytes: 0 });
        let (write, mark) = (Command::Write { from: &[7; 16], to: at }, Command::Mark);
        let copy = Command::Copy { from: at, to, bytes: 16 };
        for (commands, marks) in [
            (&[write, clear, copy][..], 0),
            (&[nothing, copy], 0),
            (&[nothing, nothing], 0),
            (&[], 0),
            (&[mark, clear, copy, mark], 1),
            (&[mark, mark, nothing, mark, copy], 2),
            (&[clear, copy], 0),
        ] {
            back.fill(0xA5);
            gpu.submit_all(FIRST, commands).expect("commands");
            assert_eq!(gpu.wait(FIRST).expect("a wait").len(), marks);
            let is_copied = commands.iter().any(|command| matches!(command, Command::Copy { .. }));
            let expected = [7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7];
            assert_eq!(back[..], if is_copied { expected } else { [0xA5; 16] }, "{commands:?}");
        }
    }
}

fn a_launch_that_is_refused_among_others_is_named() {
    static EMPTY: Module = Module { name: "empty", ptx: ".version 9.0\n.target sm_80\n.address_size 64\n" };
    let unknown = TypedKernel::new(Kernel { name: "trial_unknown", module: &EMPTY, simulate: None });
    let input = some_numbers();
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let mut buffers = SumBuffers::new(&gpu).expect("memory");
        let too_much = Shape { shared: gpu.properties().shared + 1, ..shape(3, 128) };
        let right = sum(&input);
        for wrong in [
            Trial { shape: too_much, ..right },
            Trial { shape: shape(0, 128), ..right },
            Trial { shape: shape(1, 1025), ..right },
            Trial { kernel: &unknown, ..right },
        ] {
            let error = buffers.run(&gpu, &wrong, 0).expect_err("an impossible launch");
            let is_named = matches!(&error, GpuError::Launch { name, .. } if name == wrong.kernel.kernel.name);
            assert!(is_named, "{:?}: {error:?}", wrong.shape);
            assert_eq!(buffers.run(&gpu, &right, 0).expect("a sum").total, input.iter().sum::<u32>());
        }
    }
}

fn a_kernel_that_goes_wrong_among_others_is_reported_by_the_wait() {
    let gpu = Gpu::new(simulator(1), BUDGET);
    let mut buffers = SumBuffers::new(&gpu).expect("memory");
    let error = buffers.run(&gpu, &trial(&trial::HALF_BARRIER, shape(1, 64), 32), 0).expect_err("a wrong kernel");
    assert!(matches!(&error, GpuError::Lost { reason } if reason.contains("trial_half_barrier")), "{error:?}");
}

fn a_fault_at_any_command_of_several_is_reported() {
    let input = some_numbers();
    let total = input.iter().sum::<u32>();
    for open in devices(0..1) {
        for fault in [Fault::Once, Fault::Lost, Fault::Late] {
            // Memory takes three calls, then there are four commands and a wait.
            for at in 3..8 {
                let faulty = Arc::new(Faulty::new(open(), fault, at));
                let gpu = Gpu::new(Arc::clone(&faulty) as Arc<dyn Device>, BUDGET);
                let mut buffers = SumBuffers::new(&gpu).expect("memory");
                let error = buffers.run(&gpu, &sum(&input), 0).expect_err("a fault");
                assert!(faulty.has_failed());
                assert_eq!(matches!(error, GpuError::Lost { .. }), fault != Fault::Once, "{fault:?} at {at}: {error}");
                assert_eq!(
                    matches!(error, GpuError::Launch { .. }),
                    fault == Fault::Once && at == 5,
                    "at {at}: {error}"
                );
                let again = buffers.run(&gpu, &sum(&input), 0).map(|again| again.total);
                assert_eq!(again.ok(), (fault == Fault::Once).then_some(total), "{fault:?} at {at}");
            }
        }
    }
}

fn what_is_written_is_taken_before_submit_returns() {
    const BYTES: usize = 1 << 20;
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let busy = gpu.allocate(64 << 20).expect("memory");
        let memory = gpu.allocate(2 * BYTES).expect("memory");
        let (mut pageable, mut pinned) = (vec![1; BYTES], gpu.pin(BYTES).expect("pinned memory"));
        let back = gpu.pin(2 * BYTES).expect("pinned memory");
        pinned.fill(2);
        // The stream is busy, so that a copy which only starts after its turn would see what comes later.
        for _ in 0..16 {
            gpu.submit(FIRST, Command::Clear { at: busy.address(), bytes: busy.bytes() }).expect("clearing");
        }
        gpu.submit(FIRST, Command::Write { from: &pageable, to: memory.address() }).expect("a write");
        gpu.submit(FIRST, Command::Write { from: &pinned, to: memory.address().plus(BYTES) }).expect("a write");
        pageable.fill(3);
        pinned.fill(3);
        let command = Command::Copy { from: memory.address(), to: back.address(), bytes: 2 * BYTES };
        gpu.submit(FIRST, command).expect("a copy");
        gpu.wait(FIRST).expect("a wait");
        assert!(back[..BYTES].iter().all(|&byte| byte == 1), "{}: from pageable memory", gpu.properties().name);
        assert!(back[BYTES..].iter().all(|&byte| byte == 2), "{}: from pinned memory", gpu.properties().name);
    }
}

fn a_wait_returns_the_times_between_marks() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let memory = gpu.allocate(1 << 20).expect("memory");
        let clear = Command::Clear { at: memory.address(), bytes: memory.bytes() };
        for round in 0..3 {
            for command in [Command::Mark, clear, Command::Mark, clear, Command::Mark] {
                gpu.submit(FIRST, command).expect("a command");
            }
            gpu.submit(SECOND, Command::Mark).expect("a mark");
            let times = gpu.wait(FIRST).expect("a wait");
            assert_eq!(times.len(), 2, "round {round}");
            assert!(times.iter().all(|time| !time.is_zero()), "round {round}: {times:?}");
            assert_eq!(gpu.wait(SECOND).expect("a wait"), [], "one mark has nothing to be compared with");
            assert_eq!(gpu.wait(FIRST).expect("a wait"), [], "marks count once");
        }
    }
}

fn threads_share_a_device() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let input = some_numbers();
        std::thread::scope(|scope| {
            for stream in [FIRST, SECOND] {
                let (gpu, trial) = (&gpu, Trial { stream, ..sum(&input) });
                scope.spawn(move || {
                    for _ in 0..20 {
                        assert_eq!(trial.run(gpu).expect("a sum").total, input.iter().sum::<u32>());
                    }
                });
            }
        });
    }
}

fn memory_is_counted_and_given_back_to_the_budget() {
    for open in devices(0..1) {
        let gpu = Gpu::new(open(), 1000);
        let first = gpu.allocate(600).expect("memory within the budget");
        assert_eq!(gpu.left(), 400);
        let refused = gpu.allocate(600).expect_err("memory over the budget");
        assert_eq!(refused, GpuError::OverBudget { asked: 600, left: 400, budget: 1000 });
        let pinned = gpu.pin(600).expect("pinned memory, which no budget counts");
        assert_eq!((gpu.left(), pinned.len()), (400, 600));
        drop(first);
        assert_eq!(gpu.left(), 1000);
        drop(gpu.allocate(1000).expect("all of the budget"));
        assert_eq!(gpu.left(), 1000);
    }
}

fn a_device_out_of_memory_refuses_and_goes_on() {
    const TOO_MANY: usize = 1 << 60;
    for open in devices(0..1) {
        let gpu = Gpu::new(open(), u64::MAX);
        for refused in [gpu.allocate(TOO_MANY).map(drop), gpu.pin(TOO_MANY).map(drop)] {
            let error = refused.expect_err("more memory than there is");
            assert!(matches!(error, GpuError::OutOfMemory { asked, .. } if asked == TOO_MANY as u64), "{error:?}");
        }
        assert_eq!(gpu.left(), u64::MAX);
        assert_sums(&gpu);
    }
}

fn a_block_may_have_more_shared_memory_than_usual() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let input = some_numbers();
        for shared in [SHARED_BYTES, 64 << 10, SHARED_BYTES, 80 << 10, gpu.properties().shared] {
            let trial = Trial { shape: Shape { shared, ..shape(3, 128) }, ..sum(&input) };
            assert_eq!(trial.run(&gpu).expect("a sum").total, input.iter().sum::<u32>(), "{shared} bytes");
        }
    }
}

fn a_shape_that_no_device_has_does_not_start() {
    for open in devices(0..1) {
        let gpu = gpu(&open);
        let input = some_numbers();
        let too_much = Shape { shared: gpu.properties().shared + 1, ..shape(3, 128) };
        for shape in [too_much, shape(0, 128), shape(3, 1025)] {
            let error = Trial { shape, ..sum(&input) }.run(&gpu).expect_err("an impossible shape");
            assert!(matches!(&error, GpuError::Launch { name, .. } if name == "trial_sum"), "{shape:?}: {error:?}");
        }
        assert_sums(&gpu);
    }
}

/// The numbers of a kernel that tells how many there are, read as soon as it has.
fn told(gpu: &Gpu, input: &Memory, pinned: &mut Pinned, n: u32) -> Result<Vec<u32>, GpuError> {
    const BEFORE: u32 = u32::MAX;
    pinned.fill(0xFF);
    let (output, total) = (pinned.address().plus(8), pinned.address());
    let arguments = TrialArguments { input: input.address(), output, total, n, reserved: 0 };
    gpu.launch(FIRST, &trial::TELL, shape(1, 64), &arguments)?;
    gpu.wait_for(FIRST, pinned, BEFORE)?;
    let words: Vec<u32> = pinned.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
    assert_eq!(words[0], n);
    Ok(words[2..][..n as usize].to_vec())
}

fn what_a_kernel_tells_the_host_is_there_when_it_says_so() {
    let numbers = some_numbers();
    for open in devices(0..2) {
        let gpu = gpu(&open);
        let (input, mut pinned) = (gpu.allocate(4 * numbers.len()).unwrap(), gpu.pin(8 + 4 * numbers.len()).unwrap());
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        gpu.submit(FIRST, Command::Write { from: &bytes, to: input.address() }).unwrap();
        for n in (1..numbers.len()).step_by(7) {
            let expected: Vec<u32> = numbers[..n].iter().map(|number| number.wrapping_add(1)).collect();
            assert_eq!(told(&gpu, &input, &mut pinned, n as u32), Ok(expected));
        }
        // The stream is idle: the wait ends, although the word has not changed.
        gpu.wait(FIRST).unwrap();
        assert_eq!(gpu.wait_for(FIRST, &pinned, u32::from_le_bytes(*pinned.first_chunk().unwrap())), Ok(()));
        for fault in [Fault::Once, Fault::Lost, Fault::Late] {
            // Allocations take two calls; then come a launch and a query.
            for at in 2..4 {
                let faulty = Arc::new(Faulty::new(simulator(at), fault, at));
                let gpu = Gpu::new(faulty, BUDGET);
                let (input, mut pinned) = (gpu.allocate(64).unwrap(), gpu.pin(64).unwrap());
                assert!(told(&gpu, &input, &mut pinned, 1).is_err(), "{fault:?} at {at}");
            }
        }
    }
}

fn a_kernel_that_is_not_there_does_not_start() {
    static BROKEN: Module = Module { name: "broken", ptx: ".version 9.0\n.target sm_80\n.address_size 64\nnonsense" };
    for open in devices(0..1) {
        let gpu = gpu(&open);
        for (name, module) in [("trial_unknown", &trial::MODULE), ("trial_sum", &BROKEN)] {
            let kernel = TypedKernel::new(Kernel { name, module, simulate: None });
            let error = trial(&kernel, shape(1, 32), 0).run(&gpu).expect_err("no such kernel");
            assert!(matches!(error, GpuError::Launch { .. }), "{error:?}");
            let names_line = error.to_string().contains("ptx input, line 4");
            assert!(gpu.properties().is_simulated || names_line == (name == "trial_sum"), "{error}");
        }
        assert_sums(&gpu);
    }
}

fn a_fault_at_any_call_is_reported_and_costs_no_memory() {
    let input = some_numbers();
    let total = input.iter().sum::<u32>();
    for open in devices(0..1) {
        for fault in [Fault::Once, Fault::Lost, Fault::Late] {
            for at in 0.. {
                let faulty = Arc::new(Faulty::new(open(), fault, at));
                let gpu = Gpu::new(Arc::clone(&faulty) as Arc<dyn Device>, BUDGET);
                let outcome = sum(&input).run(&gpu);
                assert_eq!(gpu.left(), BUDGET, "{fault:?} at call {at}");
                if !faulty.has_failed() {
                    assert!(at >= 8, "a run is three calls for memory, four commands and a wait");
                    assert_eq!(outcome.expect("a sum").total, total);
                    break;
                }
                let is_lost = matches!(outcome.expect_err("a fault"), GpuError::Lost { .. });
                assert_eq!(is_lost, fault != Fault::Once, "{fault:?} at call {at}");
                let again = sum(&input).run(&gpu).map(|again| again.total);
                match fault {
                    Fault::Once => assert_eq!(again, Ok(total), "after call {at}"),
                    _ => assert!(matches!(again, Err(GpuError::Lost { .. })), "after call {at}: {again:?}"),
                }
            }
        }
    }
}

fn a_lost_update_shows_for_some_seed() {
    let total =
        |seed| trial(&trial::RACE, shape(8, 1), 0).run(&Gpu::new(simulator(seed), BUDGET)).expect("a run").total;
    assert!((0..50).any(|seed| total(seed) < 8));
}

fn a_missing_barrier_shows_for_some_seed() {
    let expected: Vec<u32> = (0..32).rev().collect();
    let output = |seed| trial(&trial::NO_BARRIER, shape(1, 32), 0).run(&Gpu::new(simulator(seed), BUDGET));
    assert!((0..50).any(|seed| output(seed).expect("a run").output != expected));
}

fn a_wrong_kernel_fails_with_its_cause() {
    let no_shared = Shape { shared: 64, ..shape(1, 64) };
    let half_barrier =
        ["a thread ends while others wait at a barrier", "a barrier after some threads of the block have ended"];
    for (trial, causes) in [
        (trial(&trial::HALF_BARRIER, shape(1, 64), 32), &half_barrier[..]),
        (trial(&trial::TWO_BARRIERS, shape(1, 64), 32), &["threads of a block wait at different barriers"]),
        (trial(&trial::HALF_SHUFFLE, shape(1, 64), 0), &["threads of a block wait for others that never come"]),
        (trial(&trial::SUM, no_shared, 0), &["shared memory is smaller than the kernel's struct"]),
        (trial(&trial::TRAP, shape(1, 64), 63), &["trap (block 0, thread 63, line "]),
    ] {
        for seed in 0..20 {
            let error = trial.run(&Gpu::new(simulator(seed), BUDGET)).expect_err("a wrong kernel").to_string();
            assert!(causes.iter().any(|cause| error.contains(cause)), "{error}");
            assert!(error.contains(trial.kernel.kernel.name), "{error}");
        }
    }
}

/// Set in the process that is lost.
const LOSE: &str = "LANNER_TRIAL_LOSES_ITS_DEVICE";

fn an_illegal_access_costs_one_process_its_device() {
    if std::env::var_os(LOSE).is_some() {
        return lose_a_device();
    }
    let gpu = Gpu::new(Arc::new(driver()), BUDGET);
    assert_sums(&gpu);
    let test = std::env::current_exe().expect("this test");
    let mut other = std::process::Command::new(test);
    other.args(["--exact", "an_illegal_access_costs_one_process_its_device"]).env(LOSE, "1");
    let other = other.output().expect("another process");
    assert!(
        other.status.success(),
        "{}{}",
        String::from_utf8_lossy(&other.stdout),
        String::from_utf8_lossy(&other.stderr)
    );
    assert_sums(&gpu);
    assert_sums(&Gpu::new(Arc::new(driver()), BUDGET));
}

fn lose_a_device() {
    let device: Arc<dyn Device> = Arc::new(driver());
    let gpu = Gpu::new(Arc::clone(&device), BUDGET);
    let memory = gpu.allocate(16).expect("memory");
    let pinned = gpu.pin(16).expect("pinned memory");
    let (at, to) = (memory.address(), pinned.address());
    let argument = TrialArguments { input: at, output: at, total: at, n: 0, reserved: 0 };
    gpu.launch(FIRST, &trial::FAULT, shape(1, 32), &argument).expect("a start");
    let is_lost = |result: Result<(), GpuError>| matches!(result, Err(GpuError::Lost { .. }));
    assert!(is_lost(gpu.wait(FIRST).map(drop)));
    for command in [
        Command::Write { from: &[1], to: at },
        Command::Copy { from: at, to, bytes: 16 },
        Command::Clear { at, bytes: 16 },
        Command::Launch { kernel: &trial::SUM.kernel, shape: shape(1, 32), argument: &[0; 32] },
        Command::Load { kernel: &trial::SUM.kernel },
        Command::Mark,
    ] {
        assert!(is_lost(device.submit(SECOND, &[command])), "{command:?}");
    }
    let together = [Command::Clear { at, bytes: 16 }, Command::Copy { from: at, to, bytes: 16 }];
    assert!(is_lost(device.submit(SECOND, &together)));
    assert!(is_lost(device.wait(FIRST).map(drop)) && is_lost(device.wait(SECOND).map(drop)));
    assert!([Side::Device, Side::Host].into_iter().all(|side| is_lost(device.allocate(side, 16).map(drop))));
    drop((memory, pinned, gpu, device));
    match Cuda::open(0) {
        Ok(anew) => assert_sums(&Gpu::new(Arc::new(anew), BUDGET)),
        Err(error) => {
            assert!(error.to_string().ends_with("restart the program"), "{error}");
            assert!(is_lost(Err(error)));
        }
    }
}

/// Answers do not show whether the driver accepted a graph: without one the commands are started one by one. The graphs
/// of a device, by the handles of the driver, are in its `Debug` text.
fn a_graph_is_made_once_and_then_changed() {
    let cuda = driver();
    let [device, host] = [Side::Device, Side::Host].map(|side| cuda.allocate(side, 4096).expect("memory"));
    let mut first = None;
    for bytes in [256, 4096, 8, 1000, 256] {
        let commands = [
            Command::Clear { at: device.address, bytes },
            Command::Copy { from: device.address, to: host.address, bytes },
        ];
        cuda.submit(SECOND, &commands).expect("a graph");
        cuda.wait(SECOND).expect("a wait");
        let shown = format!("{cuda:?}");
        assert_eq!(shown.matches("Graph {").count(), 1, "{shown}");
        assert_eq!(*first.get_or_insert_with(|| shown.clone()), shown, "{bytes} bytes");
    }
    [device, host].into_iter().for_each(|allocation| cuda.free(allocation));
}
