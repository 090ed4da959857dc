"""Calls a submission as its stage's seam says, and says in words what is wrong with what comes back. Runs in the sandbox.

`STAGE`, put before this text, has `seams` by name (the function, its arguments, its results with their sizes), `ways`, the
names of those that are functions of the stage's own `driver`, and the calls that have to be `refused`. What is checked here is
checked for its message: nothing here is trusted, and values are judged elsewhere.
"""

import inspect
import types

import contract
import torch
from contract import Violation

PLAIN = getattr(contract, "DeviceTensor", torch.Tensor)
SEAMS = STAGE["seams"]  # noqa: F821 - stands before this text
WAYS = types.ModuleType("ways")
exec(compile(STAGE["driver"], "driver.py", "exec"), WAYS.__dict__)  # noqa: F821, S102


def run(submission, case, inputs):
    """One case. Returns the judged tensors by name: results, then copies of what is changed in place."""
    name = getattr(case.params, "seam", "")
    if getattr(case.params, "refused", False):
        refuse(submission, SEAMS[name], case)
        return {}
    if STAGE["ways"]:  # noqa: F821
        return taken(submission, name, case, inputs)
    seam = SEAMS[name]
    function = function_of(submission, seam)
    changed = {each["name"]: inputs[each["name"]].clone() for each in seam["arguments"] if each["role"] == "inout"}
    returned = called(function, seam, {**vars(case.params), **inputs, **changed})
    results = checked(seam, returned, case.dtype, sizes_of(seam, {**vars(case.params), **inputs}), inputs)
    return {**results, **{f"{name}_after": tensor for name, tensor in changed.items()}}


def function_of(submission, seam):
    function = getattr(submission, seam["name"], None)
    accepted = f"accepted is a function {seam['signature']}"
    if function is None:
        raise Violation("missing_function", f"the file defines no {seam['name']!r}; {accepted}")
    if not callable(function):
        raise Violation("missing_function", f"{seam['name']} is {described(function)}; {accepted}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function  # no signature to read; the call will tell
    try:
        given = [each for each in seam["arguments"] if not each["keyword"]]
        signature.bind(*given, **{each["name"]: None for each in seam["arguments"] if each["keyword"]})
    except TypeError as error:
        what = f"{seam['name']}{signature} cannot be called as {seam['signature']} ({error})"
        raise Violation("wrong_signature", what[:1000]) from None
    return function


def called(function, seam, given):
    by_place = [given[each["name"]] for each in seam["arguments"] if not each["keyword"]]
    return function(*by_place, **{each["name"]: given[each["name"]] for each in seam["arguments"] if each["keyword"]})


def sizes_of(seam, given):
    """The numbers of a call, and each size that an array of it shows."""
    sizes = {name: value for name, value in given.items() if isinstance(value, int | float | list)}
    for each in seam["arguments"]:
        tensor = given.get(each["name"])
        if isinstance(tensor, torch.Tensor):
            sizes |= {dim: size for dim, size in zip(each["dims"], tensor.shape, strict=False) if dim.isidentifier()}
    return sizes


def checked(seam, returned, dtype, sizes, inputs):
    """The results by name. dtype: what T stands for."""
    results = dict(zip([each["name"] for each in seam["results"]], parts_of(returned, seam), strict=True))
    device = next((tensor.device for tensor in inputs.values()), None)
    for each in seam["results"]:
        check(seam, each, results[each["name"]], dtype, sizes, device)
    return results


def parts_of(returned, seam):
    """What was returned, as a list as long as the results."""
    names = [each["name"] for each in seam["results"]]
    if not names:
        if returned is not None:
            what = (
                f"{seam['name']} returned {described(returned)}; accepted is None, with the argument changed in place"
            )
            raise Violation("wrong_return_type", what)
        return []
    if len(names) == 1:
        return [returned]
    if not isinstance(returned, tuple) or len(returned) != len(names):
        what = f"{seam['name']} returned {described(returned)}; accepted is a tuple ({', '.join(names)})"
        raise Violation("wrong_return_type", what)
    return list(returned)


def check(seam, result, tensor, dtype, sizes, device):
    name = result["name"]
    wanted = [eval(dim, {"sum": sum}, dict(sizes)) for dim in result["dims"]]  # noqa: S307 - the stage's own formula
    wanted = [len(size) if isinstance(size, list) else size for size in wanted]
    dtype = dtype if result["dtype"] == "T" else result["dtype"]
    if type(tensor) is not PLAIN:
        what = f"{seam['name']} returned {described(tensor)} for {name}; accepted is a plain tensor"
        raise Violation("wrong_return_type", what)
    if device is not None and tensor.device != device:
        raise Violation("wrong_device", f"{name} is on {tensor.device}; accepted is {device}, as the inputs are")
    if list(tensor.shape) != wanted:
        shape = f"{list(tensor.shape)}; accepted is [{', '.join(result['dims'])}], here {wanted}"
        order = ", ".join(each["name"] for each in seam["results"])
        raise Violation(
            "wrong_shape", f"{name} has shape {shape}" + (f". The order is {order}" if "," in order else "")
        )
    if str(tensor.dtype) != f"torch.{dtype}":
        raise Violation("wrong_dtype", f"{name} is {str(tensor.dtype)[6:]}; accepted is {dtype}")
    if hasattr(contract, "DeviceTensor") and not tensor.is_contiguous():
        raise Violation("wrong_layout", f"{name} has strides {list(tensor.stride())}; accepted is a contiguous tensor")


def described(thing):
    """What `thing` is, from its type alone: its own repr may be long, or may be a trap."""
    if thing is None:
        return "None"
    kind = type(thing).__name__[:40]
    where = f" on {thing.device}" if type(thing) is torch.Tensor else ""
    count = f" of {len(thing)}" if type(thing) in (tuple, list) else ""
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}{count}{where}"


# --- ways of calling --------------------------------------------------------------------------------------------------


class Function:
    """The submission's function as a way of calling gets it: on copies that are compared when the case is over.

    What was returned earlier may be an argument now, and who returned it may have kept it and write to it, where no copy shows;
    so each argument is compared with its copy once the call is over. `passed_on` is for calls that provided files make.
    """

    def __init__(self, submission, seam, dtype):
        self.seam, self.dtype, self.latest = seam, dtype, []
        self.function = function_of(submission, seam)

    def __call__(self, *given):
        copies = dict(zip([each["name"] for each in self.seam["arguments"]], self.passed_on(*given), strict=True))
        returned = called(self.function, self.seam, copies)
        tensors = {name: value for name, value in copies.items() if isinstance(value, torch.Tensor)}
        return tuple(checked(self.seam, returned, self.dtype, sizes_of(self.seam, copies), tensors).values())

    def passed_on(self, *given):
        self.check()
        names = [each["name"] for each in self.seam["arguments"]]
        arrays = {name: value for name, value in zip(names, given, strict=True) if isinstance(value, torch.Tensor)}
        copies = dict(zip(arrays, contract.placed(list(arrays), list(arrays.values())), strict=True))
        self.latest = [(name, arrays[name], copies[name]) for name in arrays]
        return [copies.get(name, value) for name, value in zip(names, given, strict=True)]

    def check(self):
        for name, argument, copy in self.latest:
            if not torch.equal(bits(argument), bits(copy)):
                raise Violation("inputs_changed", f"the input {name!r} was changed in place; return new tensors")
        self.latest = []


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def taken(submission, name, case, inputs):
    """A case of a stage that has ways of calling of its own, made in one of them, or by the function itself."""
    seams = [seam for key, seam in SEAMS.items() if key not in STAGE["ways"]]  # noqa: F821
    functions = [Function(submission, seam, case.dtype) for seam in seams]
    way = SEAMS[name]
    given = {**vars(case.params), **inputs}
    with torch.enable_grad():  # whatever the submission left switched off
        arguments = [given[each["name"]] for each in way["arguments"]]
        own = getattr(WAYS, name)(*functions, *arguments) if name in STAGE["ways"] else None  # noqa: F821
        results = functions[[*SEAMS].index(name)](*arguments) if own is None else own
    for function in functions:
        function.check()
    results = results if isinstance(results, tuple) else (results,)
    return dict(zip([each["name"] for each in way["results"]], results, strict=True))


# --- calls that have to be refused ------------------------------------------------------------------------------------


def refuse(submission, seam, case):
    """Every call outside of the contract has to raise ValueError, and to launch nothing before."""
    function, launches = function_of(submission, seam), getattr(contract, "launches", lambda: 0)
    for call in STAGE["refused"]:  # noqa: F821
        given = {**vars(case.params), **asked(seam, case)}
        given |= {name: made(**form) for name, form in call["arrays"].items()} | call["numbers"]
        before, how = launches(), "returned"
        try:
            called(function, seam, given)
        except ValueError:
            how = "raised ValueError"
        except Violation:
            how = "went on to call torch on them"
        except Exception as error:  # whatever else it raises teaches a caller less
            how = f"raised {type(error).__name__}"
        if launches() > before:
            how = "launched a kernel"
        if how != "raised ValueError":
            accepted = "outside of the contract it has to raise ValueError" + (
                " before any launch" if hasattr(contract, "launches") else ""
            )
            raise Violation("not_refused", f"{call['what']}: {seam['name']} {how}; {accepted}")


def asked(seam, case):
    """The arrays of a call within the contract, of the case's own sizes."""
    sizes, arrays = vars(case.params), [each for each in seam["arguments"] if each["role"] != "number"]
    return {
        each["name"]: made(
            [eval(dim, {"sum": sum}, dict(sizes)) for dim in each["dims"]],  # noqa: S307 - the stage's own formula
            case.dtype if each["dtype"] == "T" else each["dtype"],
        )
        for each in arrays
    }


def made(shape, dtype, layout=""):
    """A tensor that nobody may read. layout: of the transpose of a contiguous one, or of every second row of one."""
    make = getattr(contract, "tensor", lambda size, kind: torch.zeros(size, dtype=kind))
    kind = getattr(torch, dtype)
    if layout == "transposed":
        return make(shape[::-1], kind).t()
    return make([2 * shape[0], *shape[1:]], kind)[::2] if layout == "strided" else make(shape, kind)
