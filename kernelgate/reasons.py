"""Why a verdict was given, as a word: the second closed vocabulary beside verdicts, from which documents and tests are written.

A new reason is one row here, in the order of its verdict. `python -m kernelgate.reasons` writes the table of docs/grading.md.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Self

from kernelgate.settings import ROOT
from kernelgate.verdicts import Verdict
from kernelgate.written_part import replaced

_WRONG, _CONTRACT, _COMPILE = Verdict.WRONG_ANSWER, Verdict.CONTRACT_VIOLATION, Verdict.COMPILE_ERROR
_RUNTIME, _TIME = Verdict.RUNTIME_ERROR, Verdict.TIME_LIMIT


class Reason(StrEnum):
    """The word that a result carries, the sentence that explains it, and the verdicts that it can come with.

    meaning: what happened, for a reader who has not seen the message. verdicts: the first is the usual one.
    """

    meaning: str
    verdicts: tuple[Verdict, ...]

    def __new__(cls, word: str, meaning: str = "", *verdicts: Verdict) -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        member.verdicts = verdicts
        return member

    PASSED = "passed", "Every case is right, and the gate is passed where the stage has one.", Verdict.ACCEPTED
    SPEED_NOT_JUDGED = "speed_not_judged", "Every case is right; this machine measures no speed.", Verdict.CORRECT
    CASE_RIGHT = "case_right", "The one case that was run is right; a run counts nowhere.", Verdict.CORRECT
    TOO_SLOW = "too_slow", "Every case is right; the speedup is below the gate.", Verdict.GATE_MISSED

    WRONG_VALUE = "wrong_value", "A value differs from the reference by more than its tolerance.", _WRONG
    NOT_REPEATABLE = "not_repeatable", "Two runs on one input gave different bits.", _WRONG
    WRONG_WHEN_TIMED = "wrong_when_timed", "Right when it was judged, wrong while it was timed.", _WRONG
    RACE = "race", "Two threads use one address without order; the stage chooses the verdict.", _WRONG, _RUNTIME

    MISSING_FUNCTION = "missing_function", "The file has no function of the name that the stage asks for.", _CONTRACT
    WRONG_SIGNATURE = "wrong_signature", "The function takes other arguments than the stage's.", _CONTRACT, _COMPILE
    WRONG_RETURN_TYPE = "wrong_return_type", "Something else than the tensors of the contract was returned.", _CONTRACT
    MISSING_TENSOR = "missing_tensor", "A tensor that is judged did not come back.", _CONTRACT
    WRONG_SHAPE = "wrong_shape", "A tensor has another shape than the contract's.", _CONTRACT
    WRONG_DTYPE = "wrong_dtype", "A tensor has another dtype than the contract's.", _CONTRACT
    WRONG_LAYOUT = "wrong_layout", "A tensor's strides are not those that the contract asks for.", _CONTRACT
    WRONG_FORM = "wrong_form", "What was returned is not a tensor of the kind that the contract asks for.", _CONTRACT
    WRONG_DEVICE = "wrong_device", "A tensor lies on another device, or is not dense.", _CONTRACT
    NO_GRADIENT = "no_gradient", "No gradient arrives where the contract asks for one.", _CONTRACT
    NOT_REFUSED = "not_refused", "An input that the function has to refuse was taken.", _CONTRACT
    TOO_LARGE = "too_large", "The results are larger than what is read of one case.", _CONTRACT
    INPUTS_CHANGED = "inputs_changed", "An input was written to; inputs are read-only.", _CONTRACT
    READS_VALUES = "reads_values", "Host code asked a device tensor for its values, which it does not have.", _CONTRACT
    TORCH_OPERATOR = "torch_operator", "A torch operator was asked to compute; the stage asks for kernels.", _CONTRACT
    FOREIGN_TENSOR = "foreign_tensor", "A returned tensor lies in no memory of its call.", _CONTRACT
    SHARED_ALLOCATION = "shared_allocation", "A returned tensor is only a part of an allocation.", _CONTRACT
    UNKNOWN_MEMORY = "unknown_memory", "A tensor of another call was used.", _CONTRACT
    HOST_DESCRIPTOR = "host_descriptor", "A tensor descriptor was made by host code.", _CONTRACT
    LAUNCHED_OUTSIDE = "launched_outside", "A kernel was launched outside of the function that is called.", _CONTRACT
    NO_LAUNCH = "no_launch", "No kernel was launched, yet tensors came back.", _CONTRACT
    TOO_MANY_KERNELS = (
        "too_many_kernels",
        "One call compiled and launched more kernels than a recording holds.",
        _CONTRACT,
    )
    TAPE_TOO_LONG = "tape_too_long", "One call recorded more operations than a recording holds.", _CONTRACT
    TOO_MANY_CALLS = "too_many_calls", "The recorded calls take more bytes than a recording holds.", _CONTRACT
    TAPE_DAMAGED = "tape_damaged", "The recording is not one that the recorder can have written.", _CONTRACT
    CHANNEL_MISUSED = "channel_misused", "The submission wrote to the channel of its grader.", _CONTRACT
    WORKSPACE = "workspace", "Device memory beyond what the stage allows was asked for.", _CONTRACT
    CLOCK_MOVED = "clock_moved", "The card's events tell another time than the host's clock does.", _CONTRACT
    FORBIDDEN_CALL = "forbidden_call", "A function was called that cannot be recorded.", _CONTRACT
    UNRECORDABLE_CALL = "unrecordable_call", "A CUDA call was made whose effect no replay can repeat.", _CONTRACT
    MANAGED_MEMORY = "managed_memory", "Memory that host and device share was asked for.", _CONTRACT
    DRIVER_CALL = "driver_call", "A function of the CUDA driver was looked up.", _CONTRACT
    UPLOAD_TOO_LARGE = "upload_too_large", "More host data was copied to the device than the stage allows.", _CONTRACT
    UNKNOWN_STREAM = "unknown_stream", "A stream handle was used that was not handed out.", _CONTRACT
    STREAM_NOT_JOINED = "stream_not_joined", "Work on the submission's own stream is never waited for.", _CONTRACT
    OWN_INPUTS = "own_inputs", "The values that a run was given do not fit its case.", _CONTRACT
    VIOLATION = "violation", "The stage's driver says that the contract was broken; the message says how.", _CONTRACT

    WRONG_FILES = "wrong_files", "Files of a submission of several cannot stand beside one another.", _COMPILE
    EMPTY_FILE = "empty_file", "The file has no text.", _COMPILE
    BINARY_FILE = "binary_file", "The file has a NUL byte.", _COMPILE
    NOT_UTF8 = "not_utf8", "The file is not UTF-8.", _COMPILE
    TOO_LONG = "too_long", "The file is larger than the stage allows.", _COMPILE
    SYNTAX_ERROR = "syntax_error", "The file does not parse.", _COMPILE
    IMPORT_ERROR = "import_error", "The file imports what is not there.", _COMPILE
    NVCC_ERROR = "nvcc_error", "The CUDA compiler refused the file.", _COMPILE
    KERNEL_ERROR = "kernel_error", "Triton could not compile a kernel.", _COMPILE
    NO_KERNEL = "no_kernel", "The file has no __global__ function that is used.", _COMPILE
    NO_DEVICE_CODE = "no_device_code", "The compiled device code cannot be read.", _COMPILE
    CANNOT_EMULATE = "cannot_emulate", "The file uses what only a GPU runs; a worker with one grades it.", _COMPILE
    COMPILE_TIME = "compile_time", "The compiler was stopped at its time limit.", _COMPILE
    COMPILE_MEMORY = "compile_memory", "The compiler was stopped at its memory limit.", _COMPILE
    COMPILE_OUTPUT = "compile_output", "The compiler printed more than is kept.", _COMPILE
    COMPILE_SCRATCH = "compile_scratch", "The compiler wrote more files than it may.", _COMPILE
    COMPILE_CRASHED = "compile_crashed", "The compiler was ended by a signal.", _COMPILE

    EXCEPTION = "exception", "An exception left the submission.", _RUNTIME
    ENDED_EARLY = "ended_early", "The process exited instead of returning.", _RUNTIME
    CRASHED = "crashed", "The process was ended by a signal.", _RUNTIME
    OUTPUT_LIMIT = "output_limit", "More was printed than the stage allows.", _RUNTIME
    SCRATCH_LIMIT = "scratch_limit", "More files were written than the stage allows.", _RUNTIME
    NOT_LOADABLE = "not_loadable", "The compiled library does not load.", _RUNTIME
    DRIVER_CRASHED = "driver_crashed", "The driver ended the process that held the device code.", _RUNTIME
    ILLEGAL_ADDRESS = "illegal_address", "A kernel used memory outside of the buffers it was given.", _RUNTIME
    MISALIGNED_ADDRESS = "misaligned_address", "A kernel used an address that its type cannot have.", _RUNTIME
    KERNEL_FAILED = "kernel_failed", "A kernel failed on the device, which says no more.", _RUNTIME
    ILLEGAL_INSTRUCTION = "illegal_instruction", "A kernel ran a trap or an illegal instruction.", _RUNTIME
    ASSERTION = "assertion", "An assert in a kernel did not hold.", _RUNTIME
    STACK_OVERFLOW = "stack_overflow", "A kernel's stack overflowed.", _RUNTIME
    LAUNCH_REFUSED = "launch_refused", "A launch was refused, or asks for more than the card has.", _RUNTIME
    OUT_OF_MEMORY = "out_of_memory", "The device ran out of memory.", _RUNTIME
    OUT_OF_RESOURCES = (
        "out_of_resources",
        "A Triton kernel needs more shared memory or registers than there are.",
        _RUNTIME,
    )
    UNINITIALISED_READ = "uninitialised_read", "A kernel used a value that nothing had set.", _RUNTIME
    CONSTANT_WRITE = "constant_write", "A kernel wrote to constant memory.", _RUNTIME
    DIVISION_BY_ZERO = "division_by_zero", "A kernel divided a whole number by zero.", _RUNTIME
    WARP_MASK = "warp_mask", "A warp function was called with a mask that does not fit its threads.", _RUNTIME
    WARP_DIVERGENCE = "warp_divergence", "Threads of one warp met in different warp functions.", _RUNTIME
    SHARED_MEMORY = "shared_memory", "Shared memory was used beyond what the launch asked for.", _RUNTIME
    BARRIER_MISUSED = "barrier_misused", "A barrier or pipeline object was used against its rules.", _RUNTIME
    GRID_SYNC = "grid_sync", "A grid was synchronised that was not launched cooperatively.", _RUNTIME
    CANNOT_INTERPRET = (
        "cannot_interpret",
        "A kernel uses what is not interpreted; a worker with a GPU runs it.",
        _RUNTIME,
    )

    TIME_LIMIT = "time_limit", "Stopped at the stage's time limit.", _TIME
    DEADLOCK = "deadlock", "Threads wait for one another for ever.", _TIME
    MEMORY_LIMIT = "memory_limit", "Stopped at the stage's memory limit.", Verdict.MEMORY_LIMIT
    JUDGE_FAILED = "judge_failed", "The service failed three times; it does not count.", Verdict.JUDGE_ERROR


def of_contract(word: str) -> Reason:
    """The contract violation of that name, as a stage's driver raises it; any other word is a plain `violation`."""
    try:
        reason = Reason(word)
    except ValueError:
        return Reason.VIOLATION
    return reason if _CONTRACT in reason.verdicts else Reason.VIOLATION


HEAD, TAIL = "<!-- written by `python -m kernelgate.reasons` -->", "<!-- end of the reasons -->"


def table() -> str:
    """Every reason by verdict, as docs/grading.md has them between HEAD and TAIL."""
    rows = [
        f"| {', '.join(f'`{each}`' for each in reason.verdicts)} | `{reason}` | {reason.meaning} |"
        for verdict in Verdict
        for reason in Reason
        if reason.verdicts[0] is verdict
    ]
    return "\n".join([HEAD, "", "| verdict | reason | what happened |", "|---|---|---|", *rows, "", TAIL])


def rewritten(page: str) -> str:
    """The page with its table as the code has it now. Raises ValueError where the page has no place for one."""
    return replaced(page, "grading.md", HEAD, TAIL, table())


if __name__ == "__main__":
    path = ROOT / "docs" / "grading.md"
    path.write_text(rewritten(path.read_text()))
    sys.stdout.write(f"{path}: {len(Reason)} reasons\n")
