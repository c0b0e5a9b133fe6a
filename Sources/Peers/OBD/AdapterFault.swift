// The faults of a simulated adapter and of its replies.
// Source: reports of owners of real adapters, and known defects of clones.

import Protocols

public typealias AdapterFault = Fault<AdapterFaultKind>

/// The faults of an adapter. WHEN counts the replies of the car. A fault with a start time occurs only if the adapter is plugged in at that
/// time.
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
  case negativeResponse = "nrc"
  case responsePending = "nrc-78"
  case deadPID = "dead-pid"
  case refusedPID = "refused-pid"
  case longPID = "long-pid"
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

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) {
    switch self {
    case .latency: (.always, 30 * .millisecond)
    case .split: (.always, 2 * .millisecond)
    case .latePrompt: (.always, 50 * .millisecond)
    case .responsePending: (.every(10), 300 * .millisecond)
    case .echo, .noLineEnds, .noCount, .wrongCount, .clone: (.always, nil)
    case .noAdaptive, .noMasks, .noFlowControl, .noLong, .noMemory, .noRepeat, .fixedMonitor: (.always, nil)
    case .ignoresHeaders, .ignoresSpaces, .ignoresFilter, .ignoresTiming: (.always, nil)
    case .ignoresProtocol, .noChecksum, .padsZeros, .ignoresSTPX: (.always, nil)
    case .deadPID, .refusedPID, .longPID, .stray, .twice: (.always, nil)
    case .falseVersion, .noisyBanner, .oddLF, .lockup, .onceOnly: (.always, nil)
    default: (.every(10), nil)
    }
  }

  public var takesDuration: Bool {
    switch self {
    case .latency, .split, .latePrompt, .hang, .responsePending: true
    default: false
    }
  }

  public var takesCode: Bool {
    switch self {
    case .negativeResponse, .deadPID, .refusedPID, .longPID: true
    default: false
    }
  }

  public var syntax: String {
    switch self {
    case .latency, .split, .latePrompt: "\(rawValue)[:MS]"
    case .negativeResponse: "\(rawValue):CODE[:WHEN]"
    case .deadPID, .refusedPID, .longPID: "\(rawValue):CODE"
    default: defaults.trigger == .always ? rawValue : takesDuration ? "\(rawValue)[:WHEN[:MS]]" : "\(rawValue)[:WHEN]"
    }
  }
}
