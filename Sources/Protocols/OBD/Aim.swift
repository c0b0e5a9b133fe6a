// How an adapter is set for a request, and the commands that turn it there from where it is.
// Facts: the ELM327 data sheet on SP, SH, CP, CRA, AR, FC SH, FC SD, FC SM, AT and ST.

struct Aim: Equatable, Sendable {
  var bus: VehicleBus
  /// Whom it asks and listens to; nil: nobody knows.
  var target: Target?
  var timing = ReplyTiming.initial

  /// One command on the way.
  enum Step: Equatable, Sendable {
    /// Without it the adapter asks somebody else.
    case required(String)
    /// A filter: where it is missing, answers are told apart by their source.
    case preferred(String)
    /// The same as the step before it, for adapters that do not know that.
    case instead(String)
    /// Without it answers take longer, or may come too late.
    case optional(String)

    var bytes: [UInt8] {
      switch self {
      case .required(let text), .preferred(let text), .instead(let text), .optional(let text): Array(text.utf8)
      }
    }
  }

  /// What turns an adapter here that is set as `aim` says; nil: it was just set up. Target and bus must fit.
  func steps(from aim: Aim?, _ traits: AdapterTraits) -> [Step] {
    var steps: [Step] = []
    if aim?.bus != bus { steps.append(.required((traits.missing.contains(.memoryOff) ? "ATTP" : "ATSP") + bus.digit)) }
    if let target, aim?.target != target || aim?.bus != bus { steps += target.steps(from: aim, traits) }
    return steps + timing.steps(from: aim?.timing ?? .initial, traits)
  }
}

extension Target {
  fileprivate func steps(from aim: Aim?, _ traits: AdapterTraits) -> [Aim.Step] {
    guard let request else { return [] }
    var steps: [Aim.Step] = []
    let digits = request.text
    // 18 is what every adapter begins with, but what another 29-bit target had stays.
    if request.isLong { steps.append(.required("ATCP" + digits.prefix(2))) }
    steps.append(.required("ATSH" + (request.isLong ? digits.suffix(6) : digits[...])))
    steps += flowControl(from: aim)
    // What takes whom to ask with the question must hear them all; the filter that it begins with is narrow enough.
    let hearsAll = traits.takesHeader && isUsual
    if hearsAll, aim?.target?.isUsual ?? (aim == nil) { return steps }
    guard traits.hasFilter else { return steps }
    if let reply, !hearsAll { return steps + [.preferred("ATCRA" + reply.text)] }
    return steps + [.preferred("ATCRA"), .instead("ATAR")]
  }

  /// Says where flow control goes and what it says, before the mode that uses both; or that the adapter finds out itself.
  private func flowControl(from aim: Aim?) -> [Aim.Step] {
    // nil: after a refusal nobody knows how it is set.
    let old: Bool? = aim.map { $0.target?.needsFlowControl } ?? false
    guard needsFlowControl, let request else { return old == false ? [] : [.optional("ATFCSM0")] }
    let header = Aim.Step.optional("ATFCSH" + request.text)
    return old == true ? [header] : [header, .optional("ATFCSD300000"), .optional("ATFCSM1")]
  }
}

/// How long an adapter waits for an answer, and for more of it.
struct ReplyTiming: Hashable, Sendable {
  /// AT AT: 0 waits for `timeout`, 1 and 2 learn from the vehicle to wait less.
  let adaptive: Int
  /// AT ST, in steps of 4.096 ms.
  let timeout: UInt8

  /// As every adapter begins.
  static let initial = ReplyTiming(adaptive: 1, timeout: 0x32)
  /// For all controllers at once: an adapter that learns from the quick ones would miss the slow.
  static let thorough = ReplyTiming(adaptive: 0, timeout: 0x32)
  /// For controllers that ask for patience (7F xx 78).
  static let patient = ReplyTiming(adaptive: 0, timeout: 0xFF)

  /// As a person reads it: `AT1 ST32`.
  var text: String { "AT\(adaptive) ST\(String(decoding: hexText([timeout]), as: UTF8.self))" }

  fileprivate func steps(from old: ReplyTiming, _ traits: AdapterTraits) -> [Aim.Step] {
    (adaptive == old.adaptive || !traits.hasAdaptiveTiming ? [] : [.optional("ATAT\(adaptive)")])
      + (timeout == old.timeout || !traits.hasTimeout ? [] : [.optional("ATST\(String(decoding: hexText([timeout]), as: UTF8.self))")])
  }
}
