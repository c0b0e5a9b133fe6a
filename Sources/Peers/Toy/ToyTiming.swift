// How long a toy takes, and how long it waits. Only numbers.
// Facts: protocols of the toy, §A (500, 2000, 54464 and 10000 ms, one second of being busy) and §C (10 s, one look at the
// acceleration each 500 ms); 150 ms are what its library waits after closing. How long it boots is our definition.

import Protocols

/// The times of a toy.
public struct ToyTiming: Sendable, Equatable {
  /// LED orange.
  public var boot: Nanoseconds = 2 * .second
  /// Every attempt to connect takes so long, or less where it succeeds.
  public var dial: Nanoseconds = 500 * .millisecond
  /// From closing a connection to the next attempt.
  public var rest: Nanoseconds = 150 * .millisecond
  /// For the phone's first packet.
  public var firstPacket: Nanoseconds = 2000 * .millisecond
  /// After its own `ok` it does not hear what comes.
  public var busy: Nanoseconds = 1000 * .millisecond
  /// For the credentials, from then on: 120 000 ms in a parameter of 16 bits.
  public var credentials: Nanoseconds = (120_000 % 65_536) * .millisecond
  /// For the network to take it in.
  public var join: Nanoseconds = 10 * .second
  /// For a web server's answer, from its request on.
  public var answer: Nanoseconds = 10 * .second
  /// Between two passes of its main loop.
  public var pass: Nanoseconds = 500 * .millisecond

  /// As the toy was built.
  public static let real = ToyTiming()
  /// For tests: a tenth where it keeps others waiting, or is kept waiting by what is not there. The two seconds for a phone's
  /// first packet stay, for on a busy machine they are not long.
  public static let instant = ToyTiming(
    boot: 50 * .millisecond, dial: 50 * .millisecond, rest: 15 * .millisecond, busy: 100 * .millisecond, credentials: 5446 * .millisecond,
    join: .second, answer: .second, pass: 50 * .millisecond)
}
