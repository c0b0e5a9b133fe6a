// The faults of a simulated adapter and of its replies.
// Facts: faults that owners of real adapters report, and known defects of clones.

import Protocols

public typealias AdapterFault = Fault<AdapterFaultKind>

/// The faults of an adapter. WHEN counts the replies of the car, or is a time since its start at which the adapter is plugged in.
public enum AdapterFaultKind: String, FaultKind {
  case latency, split
  case latePrompt = "late-prompt"
  case lostPrompt = "lost-prompt"
  case garbage
  case noData = "no-data"
  case stopped
  case canError = "can-error"
  case lvReset = "lv-reset"
  case bufferFull = "buffer-full"
  case silentOverrun = "silent-overrun"
  case vendorText = "vendor-text"
  case refusal = "nrc"
  case pending = "nrc-78"
  case deadParameter = "dead-pid"
  case refusedParameter = "refused-pid"
  case longParameter = "long-pid"
  case interleave, stale, stray, twice
  case disconnect, hang, babble, echo
  case noLineEnds = "no-lf-cr"
  case noCount = "no-count"
  case wrongCount = "wrong-count"
  case clone
  case noAdaptive = "no-adaptive"
  case noMasks = "no-masks"
  case noFlowControl = "no-flow-control"
  case noLong = "no-long"
  case noMemory = "no-memory"
  case noRepeat = "no-repeat"
  case fixedMonitor = "fixed-monitor"
  case ignoresHeaders = "ignore-headers"
  case ignoresSpaces = "ignore-spaces"
  case ignoresFilter = "ignore-filter"
  case ignoresTiming = "ignore-timing"
  case falseVersion = "false-version"
  case noisyBanner = "noisy-banner"
  case oddLF = "odd-lf"
  case ignoresProtocol = "ignore-protocol"
  case noChecksum = "no-checksum"
  case padsZeros = "pad-zeros"
  case ignoresSTPX = "ignore-stpx"
  case lockup = "tpa0-lockup"
  case onceOnly = "once-only"

  public static let countedItems = "replies"

  public var defaults: (moment: FaultMoment, time: Nanoseconds?) {
    switch self {
    case .latency: (.always, 30 * .millisecond)
    case .split: (.always, 2 * .millisecond)
    case .latePrompt: (.always, 50 * .millisecond)
    case .pending: (.every(10), 300 * .millisecond)
    case .echo, .noLineEnds, .noCount, .wrongCount, .clone: (.always, nil)
    case .noAdaptive, .noMasks, .noFlowControl, .noLong, .noMemory, .noRepeat, .fixedMonitor: (.always, nil)
    case .ignoresHeaders, .ignoresSpaces, .ignoresFilter, .ignoresTiming: (.always, nil)
    case .ignoresProtocol, .noChecksum, .padsZeros, .ignoresSTPX: (.always, nil)
    case .deadParameter, .refusedParameter, .longParameter, .stray, .twice: (.always, nil)
    case .falseVersion, .noisyBanner, .oddLF, .lockup, .onceOnly: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesTime: Bool {
    switch self {
    case .latency, .split, .latePrompt, .hang, .pending: true
    default: false
    }
  }

  public var takesCode: Bool {
    switch self {
    case .refusal, .deadParameter, .refusedParameter, .longParameter: true
    default: false
    }
  }

  public var form: String {
    switch self {
    case .latency, .split, .latePrompt: "\(rawValue)[:MS]"
    case .refusal: "\(rawValue):CODE[:WHEN]"
    case .deadParameter, .refusedParameter, .longParameter: "\(rawValue):CODE"
    default: defaults.moment == .always ? rawValue : takesTime ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]"
    }
  }
}
