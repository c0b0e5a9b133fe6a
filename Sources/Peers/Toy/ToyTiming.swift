// The durations and timeouts of a toy. Source: microprocessor.ino and ESP8266.cpp of neils95/Trivio; the boot time is an estimate.

import Protocols

/// The durations and timeouts of a toy.
public struct ToyTiming: Sendable, Equatable {
  /// The boot time (LED orange).
  public var boot: Nanoseconds = 2 * .second
  /// The timeout of a connection attempt.
  public var connect: Nanoseconds = 500 * .millisecond
  /// The delay from the end of a connection to the next attempt.
  public var reconnectDelay: Nanoseconds = 150 * .millisecond
  /// The timeout for the first packet of the phone.
  public var firstPacket: Nanoseconds = 2000 * .millisecond
  /// The time for which the toy loses input after its `ok`.
  public var busy: Nanoseconds = 1000 * .millisecond
  /// The timeout for the credentials: 120 000 ms truncated to 16 bits.
  public var credentials: Nanoseconds = (120_000 % 65_536) * .millisecond
  /// The timeout for joining the network.
  public var join: Nanoseconds = 10 * .second
  /// The timeout for the reply of the web server.
  public var answer: Nanoseconds = 10 * .second
  /// The time between two passes of the main loop.
  public var loopPeriod: Nanoseconds = 500 * .millisecond

  /// The times of the real toy.
  public static let real = ToyTiming()
  /// Times for tests, about a tenth of the real ones. The timeout for the first packet stays at 2 s, for slow machines.
  public static let instant = ToyTiming(
    boot: 50 * .millisecond, connect: 50 * .millisecond, reconnectDelay: 15 * .millisecond, busy: 100 * .millisecond,
    credentials: 5446 * .millisecond,
    join: .second, answer: .second, loopPeriod: 50 * .millisecond)
}
