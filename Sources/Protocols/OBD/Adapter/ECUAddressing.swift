// The addressing that the adapter needs for a request (protocol, header, address byte, filter, flow control and timeout), and the commands
// that change it. Source: ELM327 data sheet, AT SP, SH, CP, CEA, TA, CRA, AR, FC SH, FC SD, FC SM, AT and ST.

struct ECUAddressing: Equatable, Sendable {
  let bus: OBDProtocol
  /// The target, or nil if it is unknown.
  let target: Target?
  let timing: ReplyTiming
  /// Whether frames may begin with an address byte although the target is unknown.
  private(set) var mayHaveAddressByte = false

  init(bus: OBDProtocol, target: Target?, timing: ReplyTiming = .initial) { (self.bus, self.target, self.timing) = (bus, target, timing) }

  /// This addressing with an unknown target, for use while a command is in flight or after one was rejected. `next` is the target to which
  /// the adapter was being set.
  func withoutTarget(next: Target? = nil) -> ECUAddressing {
    var result = ECUAddressing(bus: bus, target: nil, timing: timing)
    result.mayHaveAddressByte = mayHaveAddressByte || [target, next].contains { $0.map { $0.addressBytes != .normal } ?? false }
    return result
  }

  /// One retargeting command.
  enum Step: Equatable, Sendable {
    /// If the adapter does not support it, the ECU cannot be addressed.
    case required(String)
    /// A filter. If the adapter does not support it, responses are distinguished by their source.
    case preferred(String)
    /// Replaces the previous step if the adapter does not support that step.
    case fallback(String)
    /// If the adapter does not support it, responses take longer or come too late.
    case optional(String)

    var bytes: [UInt8] {
      switch self {
      case .required(let text), .preferred(let text), .fallback(let text), .optional(let text): Array(text.utf8)
      }
    }
  }

  /// Returns the commands that change the adapter from `addressing`, or from the state after a setup if nil, to this addressing. The
  /// identifiers of the target must have the length that the protocol uses.
  func steps(from addressing: ECUAddressing?, _ traits: AdapterTraits) -> [Step] {
    var steps: [Step] = []
    if addressing?.bus != bus { steps.append(.required((traits.unsupported.contains(.memoryOff) ? "ATTP" : "ATSP") + bus.digit)) }
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
    if request.is29Bit { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (request.is29Bit ? digits.suffix(6) : digits[...])))
    steps += setAddressByte(from: addressing) + flowControl(from: addressing)
    // With STPX the header changes per request, so the responses of all OBD ECUs must pass. They pass the default filter (7E8 to 7EF,
    // 18DAF1xx).
    let usesDefaultFilter = traits.supportsSTPX && passesDefaultFilter
    if usesDefaultFilter, addressing?.target?.passesDefaultFilter ?? (addressing == nil) { return steps }
    guard traits.hasFilter else { return steps }
    if let reply, !usesDefaultFilter { return steps + [.preferred("ATCRA" + reply.text)] }
    return steps + [.preferred("ATCRA"), .fallback("ATAR")]
  }

  /// Returns the commands that set the address byte of frames. The adapter passes on only frames that begin with the tester's address.
  private func setAddressByte(from addressing: ECUAddressing?) -> [ECUAddressing.Step] {
    // nil if the bytes are unknown, after a rejected command.
    var old: ISOTPAddressing? = .normal
    if let addressing { old = addressing.target?.addressBytes ?? (addressing.mayHaveAddressByte ? nil : .normal) }
    guard old != addressBytes else { return [] }
    guard let sent = addressBytes.sentByte, let received = addressBytes.receivedByte else { return [.optional("ATCEA")] }
    let tester = "ATTA\(spacedHex([received]))"
    return [.required("ATCEA\(spacedHex([sent]))"), received == ISOTPAddressing.tester ? .optional(tester) : .required(tester)]
  }

  /// Returns the commands for user-defined flow control if the target needs it, otherwise for automatic flow control. Header and data must
  /// be set before the mode that uses them.
  private func flowControl(from addressing: ECUAddressing?) -> [ECUAddressing.Step] {
    // nil if the mode is unknown, after a rejected command.
    let wasUserDefined: Bool? = addressing.map { $0.target?.needsFlowControl } ?? false
    guard needsFlowControl, let request else { return wasUserDefined == false ? [] : [.optional("ATFCSM0")] }
    let header = ECUAddressing.Step.optional("ATFCSH" + request.text)
    let data = ECUAddressing.Step.optional("ATFCSD\(addressBytes.sentByte.map { spacedHex([$0]) } ?? "")300000")
    guard wasUserDefined == true else { return [header, data, .optional("ATFCSM1")] }
    return addressing?.target?.addressBytes == addressBytes ? [header] : [header, data]
  }
}

/// How long the adapter waits for a response, and for each further frame.
struct ReplyTiming: Hashable, Sendable {
  /// The mode of AT AT: 0 waits for `timeout`; 1 and 2 adapt to the ECU.
  let adaptive: Int
  /// The argument of AT ST, in units of 4.096 ms.
  let timeout: UInt8

  /// The default after a reset, 205 ms.
  static let initial = ReplyTiming(adaptive: 1, timeout: 0x32)
  /// For functional requests: adaptive timing that was learned from fast ECUs would miss slow ones.
  static let functional = ReplyTiming(adaptive: 0, timeout: 0x32)
  /// For ECUs that report "response pending" (7F xx 78).
  static let responsePending = ReplyTiming(adaptive: 0, timeout: 0xFF)

  /// The time that `timeout` means.
  var duration: Nanoseconds { Nanoseconds(timeout) * 4096 * .microsecond }

  /// The displayed form: `AT1 ST32`.
  var text: String { "AT\(adaptive) ST\(String(decoding: hexText([timeout]), as: UTF8.self))" }

  fileprivate func steps(from old: ReplyTiming, _ traits: AdapterTraits) -> [ECUAddressing.Step] {
    (adaptive == old.adaptive || !traits.hasAdaptiveTiming ? [] : [.optional("ATAT\(adaptive)")])
      + (timeout == old.timeout || !traits.hasTimeoutSetting
        ? [] : [.optional("ATST\(String(decoding: hexText([timeout]), as: UTF8.self))")])
  }
}
