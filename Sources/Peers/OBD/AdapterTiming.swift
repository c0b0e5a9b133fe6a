// The timing of an adapter and of the car's replies. Source: ELM327 data sheet (timer steps), measurements on real adapters.

import Protocols

/// The durations and timeouts of an adapter and its car.
public struct AdapterTiming: Sendable, Equatable {
  /// From the request to the first frame of the fastest ECU, on CAN.
  public var latency: Nanoseconds = 5 * .millisecond
  /// The transmission of one CAN frame, with the gap before it.
  public var frame: Nanoseconds = 1_500 * .microsecond
  /// One step of ATST.
  public var timeoutStep: Nanoseconds = 4_096 * .microsecond
  /// The timeout for a further frame with ATAT1, at most that of ATST.
  public var adaptive: Nanoseconds = 28 * .millisecond
  /// The timeout for a further frame with ATAT2, at most that of ATST.
  public var adaptiveFast: Nanoseconds = 14 * .millisecond
  /// A reset (ATZ).
  public var reset: Nanoseconds = 600 * .millisecond
  /// A warm start (ATWS).
  public var warmStart: Nanoseconds = 60 * .millisecond
  /// A successful protocol detection.
  public var search: Nanoseconds = 1_200 * .millisecond
  /// A protocol detection that finds no protocol.
  public var failedSearch: Nanoseconds = 5 * .second
  /// A command that changes a setting.
  public var setting: Nanoseconds = 2 * .millisecond
  /// The initialisation of a K-line at 5 baud.
  public var slowInit: Nanoseconds = 2_500 * .millisecond
  /// The initialisation of a K-line by a pulse.
  public var fastInit: Nanoseconds = 300 * .millisecond
  /// The transmission of one byte on a K-line.
  public var kLineByte: Nanoseconds = 962 * .microsecond
  /// The gap between two messages on a K-line.
  public var kLinePause: Nanoseconds = 25 * .millisecond
  /// A request on a K-line, with its inter-byte gaps.
  public var kLineRequest: Nanoseconds = 50 * .millisecond
  /// From ATLP to the warning.
  public var lowPower: Nanoseconds = .second
  /// From the warning to sleep.
  public var lowPowerWarning: Nanoseconds = 2 * .second

  /// Realistic timing: a good adapter and a real car.
  public static let real = AdapterTiming()
  /// No delays, for benchmarks.
  public static let instant = AdapterTiming(
    latency: 0, frame: 0, timeoutStep: 0, adaptive: 0, adaptiveFast: 0, reset: 0, warmStart: 0, search: 0, failedSearch: 0, setting: 0,
    slowInit: 0, fastInit: 0, kLineByte: 0, kLinePause: 0, kLineRequest: 0, lowPower: 0, lowPowerWarning: 0)

  /// The timeout for the next frame, which restarts after each frame. It is longer on a K-line, where ECUs may take 50 ms.
  func nextFrameTimeout(_ settings: AdapterSettings, on bus: DiagnosticBus) -> Nanoseconds {
    let factor: Nanoseconds = bus.isCAN ? 1 : 3
    return switch settings.adaptive {
    case 0: firstFrameTimeout(settings)
    case 1: min(adaptive * factor, firstFrameTimeout(settings))
    default: min(adaptiveFast * factor, firstFrameTimeout(settings))
    }
  }

  /// The timeout for the first frame.
  func firstFrameTimeout(_ settings: AdapterSettings) -> Nanoseconds {
    settings.exactTimeout.map { timeoutStep == 0 ? 0 : $0 } ?? timeoutStep * Nanoseconds(settings.timeout)
  }

  /// The transmission time of a frame, with the gap before it.
  func duration(of frame: OBDFrame) -> Nanoseconds {
    frame.bus.isCAN ? self.frame : kLinePause + kLineByte * Nanoseconds(frame.data.count + 4)
  }

  /// From the request to the start of the fastest ECU's reply.
  func latency(on bus: DiagnosticBus) -> Nanoseconds { bus.isCAN ? latency : kLineRequest }
}
