// How long the parts of an ELM327 dialogue take. Facts: the data sheet's timer steps, and times measured on real adapters.

import Protocols

/// The times an adapter and the car behind it take.
public struct AdapterTiming: Sendable, Equatable {
  /// From the request to the first frame: the control unit thinks.
  public var latency: Nanoseconds = 5 * .millisecond
  /// One frame on the bus, with the pause before it.
  public var frame: Nanoseconds = 1_500 * .microsecond
  /// One step of ATST.
  public var timeoutStep: Nanoseconds = 4_096 * .microsecond
  /// What ATAT1 and ATAT2 wait after the last frame, at most as long as ATST.
  public var adaptive: Nanoseconds = 28 * .millisecond
  public var adaptiveFast: Nanoseconds = 14 * .millisecond
  /// ATZ, ATWS, and the search for a protocol.
  public var reset: Nanoseconds = 600 * .millisecond
  public var warmStart: Nanoseconds = 60 * .millisecond
  public var search: Nanoseconds = 1_200 * .millisecond
  /// The search through all protocols, for a car that answers to none.
  public var vainSearch: Nanoseconds = 5 * .second
  /// A command that sets something.
  public var setting: Nanoseconds = 2 * .millisecond
  /// Waking a K-line: one byte at 5 baud and what follows, or a pulse.
  public var slowInit: Nanoseconds = 2_500 * .millisecond
  public var fastInit: Nanoseconds = 300 * .millisecond
  /// One byte on a K-line; between two messages; and asking, whose bytes stand apart.
  public var lineByte: Nanoseconds = 962 * .microsecond
  public var linePause: Nanoseconds = 25 * .millisecond
  public var lineRequest: Nanoseconds = 50 * .millisecond
  /// From ATLP to its warning, and from there to sleep.
  public var lowPower: Nanoseconds = .second
  public var lowPowerWarning: Nanoseconds = 2 * .second

  /// As a good adapter on a real car.
  public static let real = AdapterTiming()
  /// Everything at once, for benches.
  public static let instant = AdapterTiming(
    latency: 0, frame: 0, timeoutStep: 0, adaptive: 0, adaptiveFast: 0, reset: 0, warmStart: 0, search: 0, vainSearch: 0, setting: 0,
    slowInit: 0, fastInit: 0, lineByte: 0, linePause: 0, lineRequest: 0, lowPower: 0, lowPowerWarning: 0)

  /// How long the adapter listens on when nothing tells it that the reply is complete. On a K-line units may take 50 ms.
  func wait(_ settings: AdapterSettings, on bus: DiagnosticBus) -> Nanoseconds {
    let longer: Nanoseconds = bus.isCAN ? 1 : 3
    return switch settings.adaptive {
    case 0: timeout(settings)
    case 1: min(adaptive * longer, timeout(settings))
    default: min(adaptiveFast * longer, timeout(settings))
    }
  }

  /// How long it waits for a first frame.
  func timeout(_ settings: AdapterSettings) -> Nanoseconds {
    settings.exactTimeout.map { timeoutStep == 0 ? 0 : $0 } ?? timeoutStep * Nanoseconds(settings.timeout)
  }

  /// How long a frame is on its way, with the pause before it.
  func duration(of frame: BusFrame) -> Nanoseconds {
    frame.bus.isCAN ? self.frame : linePause + lineByte * Nanoseconds(frame.data.count + 4)
  }

  /// From the adapter's request to what the quickest unit begins to say.
  func latency(on bus: DiagnosticBus) -> Nanoseconds { bus.isCAN ? latency : lineRequest }
}
