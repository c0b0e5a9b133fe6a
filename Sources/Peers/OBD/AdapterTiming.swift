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

  /// As a good adapter on a real car.
  public static let real = AdapterTiming()
  /// Everything at once, for benches.
  public static let instant = AdapterTiming(
    latency: 0, frame: 0, timeoutStep: 0, adaptive: 0, adaptiveFast: 0, reset: 0, warmStart: 0, search: 0)

  /// How long the adapter listens on when nothing tells it that the reply is complete.
  func wait(_ settings: AdapterSettings) -> Nanoseconds {
    switch settings.adaptive {
    case 0: timeout(settings)
    case 1: min(adaptive, timeout(settings))
    default: min(adaptiveFast, timeout(settings))
    }
  }

  /// How long it waits for a first frame.
  func timeout(_ settings: AdapterSettings) -> Nanoseconds { timeoutStep * Nanoseconds(settings.timeout) }
}
