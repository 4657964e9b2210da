"""Server configuration: small frozen parts, composed. Made by the command line, passed down, never edited."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from interlock.errors import InterlockError

PropertyOrder = Literal["declared", "any"]
Whitespace = Literal["fixed", "flexible"]
SchemaMode = Literal["exact", "relaxed"]
CloseOnLength = Literal["off", "answers", "all"]
ToolConstraints = Literal["auto", "all", "off"]
RunnerName = Literal["auto", "llama_cpp", "torch", "fake"]
KvType = Literal["f16", "f32", "q8_0", "q4_0", "bf16"]
SpeculativeMethod = Literal["skeleton", "ngram", "draft_model", "draft_head"]
FlashAttention = Literal["auto", "on", "off"]
TorchDtype = Literal["auto", "float32", "bfloat16", "float16"]

MAX_SPECULATIVE_TOKENS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCppConfig:
    """threads: 0 means physical cores, divided by sharers: how many models run on this machine. library: which package brings llama.cpp. gpu_layers: -1 is all."""

    threads: int = 0
    sharers: int = 1
    gpu_layers: int = 0
    flash_attention: FlashAttention = "auto"
    kv_type_k: KvType = "f16"
    kv_type_v: KvType = "f16"
    use_mmap: bool = True
    library: Literal["auto", "xllamacpp", "llama-cpp-python"] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchConfig:
    """device: a torch device; ``auto`` is an accelerator where there is one. dtype: ``auto`` is float32 on CPUs, else
    the model's own. threads, sharers: of CPUs, as in ``LlamaCppConfig``. static_shapes: decode steps in few fixed
    shapes, on CUDA replayed as graphs; ``None``: on CUDA only. fused: choose tokens on the device; ``None``: not on CPUs,
    which have the logits already. compile: run decode steps through ``torch.compile``."""

    device: str = "auto"
    dtype: TorchDtype = "auto"
    threads: int = 0
    sharers: int = 1
    static_shapes: bool | None = None
    fused: bool | None = None
    compile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeConfig:
    """mode: ``uniform`` seeded logits, or ``scripted`` from ``script`` (path of a JSON file).
    tokenizer: path of a tokenizer.json for a real vocabulary; ``None`` for bytes."""

    mode: Literal["uniform", "scripted"] = "uniform"
    seed: int = 0
    script: Path | None = None
    tokenizer: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculativeConfig:
    """Guessing tokens ahead. What comes out is the same with and without.

    methods: asked in this order, the first that has a guess is taken. num_speculative_tokens: most tokens of one
    guess, at most ``MAX_SPECULATIVE_TOKENS``. model: GGUF file of the draft model.
    prompt_lookup_min, prompt_lookup_max: tokens of the end of the text that are looked up in what stands before.
    adaptive: only verify what pays, by what guesses have yielded and what a token more costs on this machine.
    """

    methods: tuple[SpeculativeMethod, ...]
    num_speculative_tokens: int = 5
    model: Path | None = None
    prompt_lookup_min: int = 2
    prompt_lookup_max: int = 4
    adaptive: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """runner: ``auto`` is torch for a model folder, else llama_cpp. slots: sequences in the cache at once.
    context_tokens: most tokens of one sequence, 0 means the model's own limit (capped at 8,192).
    max_batch_tokens: token budget of one step.
    max_waiting: requests that may wait for a slot.
    max_kv_tokens: most tokens that all requests together hold in the cache, 0 for what the slots hold.
    prefix_cache: keep what finished requests leave in their slots for requests that begin alike.
    prompt_cache_bytes: memory for what is saved of slots before they are used for something else, 0 for none; in a ``ServerConfig``
        of all models together.
    fairness_tokens: after this many tokens a request gives its slot to one that waits, and queues again;
        0 lets every request run to its end.
    max_worker_deaths: a request that was in flight in this many deaths of a worker is not resumed again: it may
        be what kills them. 1 resumes nothing.
    worker_hang_s: a worker that does not answer, or has work and computes no step, for so many seconds is ended and
        started again; 0 for never. Longer than the longest step, which on a slow machine is a long prompt's.
    forced_tokens: what a grammar forces is not sampled. speculative: guess tokens ahead, ``None`` for not."""

    model: Path
    runner: RunnerName = "auto"
    slots: int = 8
    context_tokens: int = 0
    max_batch_tokens: int = 512
    max_waiting: int = 256
    max_kv_tokens: int = 0
    prefix_cache: bool = True
    prompt_cache_bytes: int = 0
    fairness_tokens: int = 512
    max_worker_deaths: int = 2
    worker_hang_s: float = 300.0
    grammar_cache_bytes: int = 256 * 1024 * 1024
    grammar_compile_s: float = 10.0
    mask_threads: int = 0
    forced_tokens: bool = True
    speculative: SpeculativeConfig | None = None
    llama_cpp: LlamaCppConfig = field(default_factory=LlamaCppConfig)
    torch: TorchConfig = field(default_factory=TorchConfig)
    fake: FakeConfig = field(default_factory=FakeConfig)


def _limit(default: Any, option: str, help_text: str) -> Any:
    """A field of which refusals name the option that sets it."""
    return field(default=default, metadata={"option": option, "help": help_text})


def raised_by(cls: type, name: str) -> str:
    """For a refusal: how the limit of this name is raised."""
    (option,) = [limit.metadata["option"] for limit in fields(cls) if limit.name == name]
    return f"{option} raises the limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """How far the normal form of one schema may grow before it is refused. The other bounds of the schema compiler are
    fixed, see ``constraints.bounds``. Raises ``invalid_value`` for a limit below 1."""

    max_alternatives: int = _limit(
        400, "--schema-max-alternatives", "Alternatives of one object or array that a schema may come to."
    )
    max_work: int = _limit(200_000, "--schema-max-work", "Steps of the algebra that a schema may take.")

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise InterlockError("invalid_value", f"{limit.name} must be at least 1", param=limit.name)


DEFAULT_SCHEMA_LIMITS = SchemaLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileConfig:
    """The compile pool: helpers, and the limits of one constraint. timeout_s: processor seconds; four times as many by
    the clock. documents: schemas that references may name, as (URI, JSON text). guards: the engine holds what no grammar
    can say. schema_limits: of each schema."""

    helpers: int = 1
    timeout_s: float = _limit(
        5.0, "--compile-timeout-s", "Processor seconds that one constraint may take to compile."
    )
    memory_bytes: int = 2 * 1024 * 1024 * 1024
    cache_entries: int = 4096
    cache_bytes: int = 64 * 1024 * 1024
    documents: tuple[tuple[str, str], ...] = ()
    guards: bool = True
    schema_limits: SchemaLimits = DEFAULT_SCHEMA_LIMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmConfig:
    """vLLM as the engine. urls: servers with the same model. tokenizer: GGUF file, Hugging Face folder or tokenizer.json of
    that model. model: its name there, ``None`` for the only one. start_s: how long the first of them may take to answer."""

    urls: tuple[str, ...]
    tokenizer: Path
    model: str | None = None
    api_key: str | None = None
    start_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStoreConfig:
    """Responses that are kept for ``previous_response_id``. path: an SQLite file, ``None`` for memory."""

    path: Path | None = None
    max_age_s: float = 24 * 3600.0
    max_bytes: int = 64 * 1024 * 1024
    max_responses: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """host, port (0: one from the OS). max_body_bytes, max_nesting and body_timeout_s bound a request body, max_headers,
    max_header_bytes and header_timeout_s its head; write_timeout_s bounds how long a client may take none of its answer.
    api_keys, admin_keys: keys or their hashes (``settings.keys``).
    ssl_certfile, ssl_keyfile: PEM files, both or none. allow_origins: sites whose scripts may read answers."""

    host: str = "127.0.0.1"
    port: int = 8000
    api_keys: tuple[str, ...] = ()
    admin_keys: tuple[str, ...] = ()
    max_body_bytes: int = 8 * 1024 * 1024
    max_nesting: int = 200
    body_timeout_s: float = 60.0
    max_headers: int = 100
    max_header_bytes: int = 64 * 1024
    header_timeout_s: float = 20.0
    write_timeout_s: float = 120.0
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    allow_origins: tuple[str, ...] = ()
    max_concurrent: int = 264  # the default slots and queue
    request_timeout_s: float = 600.0
    drain_s: float = 20.0
    responses: ResponseStoreConfig = field(default_factory=ResponseStoreConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDefaults:
    """Policies that a request may override (architecture section 4). property orders: declared for
    response formats, any for tool arguments. max_tokens: of an answer whose request says none, as far as the
    context has room; ``None`` for all of the room."""

    tool_constraints: ToolConstraints = "auto"
    open_objects: bool = False
    response_order: PropertyOrder = "declared"
    tool_order: PropertyOrder = "any"
    whitespace: Whitespace = "fixed"
    schema_mode: SchemaMode = "exact"
    close_on_length: CloseOnLength = "answers"
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    max_thinking_tokens: int = 4096
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadConfig:
    """on_demand: each model is loaded by its first request. unload_after_s: an idle one is unloaded after this many
    seconds, and loaded again by the next request; ``None`` for never."""

    on_demand: bool = False
    unload_after_s: float | None = None


LOAD_AT_START = LoadConfig()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything ``interlock serve`` needs. served_name: the model's name in the API. more_models: further models by
    name, with the same options. vllm: the engine in the place of a worker; then ``engine.model`` is what the
    tokenizer is read from. settings: the file of per-model settings, ``None`` for memory only."""

    served_name: str
    engine: EngineConfig
    compile: CompileConfig = field(default_factory=CompileConfig)
    http: HttpConfig = field(default_factory=HttpConfig)
    defaults: GenerationDefaults = field(default_factory=GenerationDefaults)
    load: LoadConfig = field(default_factory=LoadConfig)
    family: str | None = None
    more_models: tuple[tuple[str, Path], ...] = ()
    settings: Path | None = None
    vllm: VllmConfig | None = None
