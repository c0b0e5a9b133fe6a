// The input of the detector: plain numbers, for speed, because a year of samples can be read at once.

/// One value of a device, or its absence.
public struct Sample: Sendable, Equatable {
  /// Microseconds since the Unix epoch.
  public var time: Int64
  public var role: Role
  /// In the unit of the role; nil if absent.
  public var value: Double?

  public init(_ time: Int64, _ role: Role, _ value: Double?) { (self.time, self.role, self.value) = (time, role, value) }
}

extension Int64 {
  /// The given number of seconds, in microseconds.
  static func seconds(_ number: Int64) -> Int64 { number * 1_000_000 }
  /// The given number of minutes, in microseconds.
  static func minutes(_ number: Int64) -> Int64 { number * 60_000_000 }
}
