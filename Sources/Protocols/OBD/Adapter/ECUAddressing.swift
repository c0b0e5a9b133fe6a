// The addressing of the adapter for a request, and the commands to retarget it. Facts: the ELM327 data sheet on SP, SH, CP, CRA, AR, FC SH,
// FC SD, FC SM, AT and ST.

struct ECUAddressing: Equatable, Sendable {
  let bus: VehicleBus
  /// The target ECU and its responses; nil: unknown.
  let target: Target?
  let timing: ReplyTiming

  init(bus: VehicleBus, target: Target?, timing: ReplyTiming = .initial) { (self.bus, self.target, self.timing) = (bus, target, timing) }

  /// A command was rejected, or is in flight.
  var withoutTarget: ECUAddressing { ECUAddressing(bus: bus, target: nil, timing: timing) }

  /// One retargeting command.
  enum Step: Equatable, Sendable {
    /// Without it the request goes to another ECU.
    case required(String)
    /// A filter: without it, responses are distinguished by their source.
    case preferred(String)
    /// Alternative to the previous step, for adapters that do not support that.
    case instead(String)
    /// Without it responses take longer, or may come too late.
    case optional(String)

    var bytes: [UInt8] {
      switch self {
      case .required(let text), .preferred(let text), .instead(let text), .optional(let text): Array(text.utf8)
      }
    }
  }

  /// The commands from `addressing` to this addressing; nil: the adapter was just set up. Target and protocol must match.
  func steps(from addressing: ECUAddressing?, _ traits: AdapterTraits) -> [Step] {
    var steps: [Step] = []
    if addressing?.bus != bus { steps.append(.required((traits.missing.contains(.memoryOff) ? "ATTP" : "ATSP") + bus.digit)) }
    if let target, addressing?.target != target || addressing?.bus != bus { steps += target.steps(from: addressing, traits) }
    return steps + timing.steps(from: addressing?.timing ?? .initial, traits)
  }
}

extension Target {
  fileprivate func steps(from addressing: ECUAddressing?, _ traits: AdapterTraits) -> [ECUAddressing.Step] {
    guard let request else { return [] }
    var steps: [ECUAddressing.Step] = []
    let digits = request.text
    // 18 is the default priority, but a previous 29-bit target may have changed it.
    if request.isLong { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (request.isLong ? digits.suffix(6) : digits[...])))
    steps += flowControl(from: addressing)
    // An adapter that takes the header with the request must hear all ECUs; the default filter is narrow enough.
    let hearsAll = traits.takesHeader && isUsual
    if hearsAll, addressing?.target?.isUsual ?? (addressing == nil) { return steps }
    guard traits.hasFilter else { return steps }
    if let reply, !hearsAll { return steps + [.preferred("ATCRA" + reply.text)] }
    return steps + [.preferred("ATCRA"), .instead("ATAR")]
  }

  /// The header and data of flow control, before the mode that uses them; or automatic flow control.
  private func flowControl(from addressing: ECUAddressing?) -> [ECUAddressing.Step] {
    // nil: unknown after a rejected command.
    let old: Bool? = addressing.map { $0.target?.needsFlowControl } ?? false
    guard needsFlowControl, let request else { return old == false ? [] : [.optional("ATFCSM0")] }
    let header = ECUAddressing.Step.optional("ATFCSH" + request.text)
    return old == true ? [header] : [header, .optional("ATFCSD300000"), .optional("ATFCSM1")]
  }
}

/// The timeout of the adapter for a response and for further frames.
struct ReplyTiming: Hashable, Sendable {
  /// AT AT: 0: fixed `timeout`; 1 and 2: adaptive.
  let adaptive: Int
  /// AT ST, in steps of 4.096 ms.
  let timeout: UInt8

  /// The default of every adapter.
  static let initial = ReplyTiming(adaptive: 1, timeout: 0x32)
  /// For functional requests: adaptive timing learned from fast ECUs would miss slow ones.
  static let thorough = ReplyTiming(adaptive: 0, timeout: 0x32)
  /// For ECUs that report response pending (7F xx 78).
  static let patient = ReplyTiming(adaptive: 0, timeout: 0xFF)

  /// The displayed form: `AT1 ST32`.
  var text: String { "AT\(adaptive) ST\(String(decoding: hexText([timeout]), as: UTF8.self))" }

  fileprivate func steps(from old: ReplyTiming, _ traits: AdapterTraits) -> [ECUAddressing.Step] {
    (adaptive == old.adaptive || !traits.hasAdaptiveTiming ? [] : [.optional("ATAT\(adaptive)")])
      + (timeout == old.timeout || !traits.hasTimeout ? [] : [.optional("ATST\(String(decoding: hexText([timeout]), as: UTF8.self))")])
  }
}
