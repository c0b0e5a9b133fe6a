// The rows of the store as values: series, boots, blocks, periods.

import Protocols

/// What distinguishes a series. A property whose unit or type changes starts another series.
public struct SeriesKey: Hashable, Sendable {
  public var device: String
  public var property: String
  public var type: ValueType
  public var unit: String?

  /// Creates a key.
  public init(device: String, property: String, type: ValueType, unit: String? = nil) {
    self.device = device
    self.property = property
    self.type = type
    self.unit = unit
  }
}

/// A series and its number, which blocks name it by.
public struct Series: Hashable, Sendable {
  public let id: Int
  public let key: SeriesKey
}

/// A boot of the machine: times within it, and how to turn them into wall-clock time.
public struct Boot: Equatable, Sendable {
  public let id: Int
  /// The kernel's boot id, or a name for imported data.
  public let uuid: String
  /// Microseconds from CLOCK_BOOTTIME to the Unix epoch's clock.
  public let offset: Int64
  /// Whether the clock was synchronised when the offset was set. Then it is final.
  public let isSynchronised: Bool
  /// Whether it can have blocks that are not merged yet: the table of these has no index.
  var hasRecent = true
}

/// A time within a boot, in microseconds of CLOCK_BOOTTIME.
public struct BootTime: Hashable, Sendable {
  public var boot: Int
  public var time: Int64

  /// Creates a time.
  public init(boot: Int, time: Int64) {
    self.boot = boot
    self.time = time
  }
}

/// A block to append: the samples of one device in one boot.
public struct NewBlock: Sendable {
  public var device: String
  public var boot: Int
  /// From this time on the block covers its series, µs.
  public var start: Int64
  /// To this time the values of the block are known to be valid, µs.
  public var end: Int64
  /// Whether recording went on since the previous block of this device, so that its last values are valid until this one.
  public var continues: Bool
  /// What `BlockBuilder.build` made for the same start and end.
  public var bytes: [UInt8]

  /// Creates a block to append.
  public init(device: String, boot: Int, start: Int64, end: Int64, continues: Bool, bytes: [UInt8]) {
    self.device = device
    self.boot = boot
    self.start = start
    self.end = end
    self.continues = continues
    self.bytes = bytes
  }
}

/// A trip, a charge or a parking. The store computes none of its values.
public struct Period: Equatable, Sendable {
  /// What the vehicle did.
  public enum Kind: String, Sendable, CaseIterable {
    case trip, charge, parking
  }

  /// Its number, which never changes and is never used again; 0 before it is stored.
  public var id = 0
  public var device: String
  public var kind: Kind
  public var start: BootTime
  public var end: BootTime
  /// The IANA time zone at its start.
  public var zone: String
  /// Whether it lasts still: `end` is the latest time known.
  public var isOpen = false
  /// Whether some of its blocks were dropped. Then it is never computed again.
  public var isFrozen = false
  /// The distance in km.
  public var distance: Double?
  /// The energy in kWh: used by a trip, charged by a charge.
  public var energy: Double?
  /// The state of charge in %.
  public var startCharge: Double?
  public var endCharge: Double?
  /// The odometer in km.
  public var startOdometer: Double?
  public var endOdometer: Double?
  /// Further statistics, as a JSON object.
  public var statistics = "{}"

  /// Creates a period.
  public init(device: String, kind: Kind, start: BootTime, end: BootTime, zone: String) {
    self.device = device
    self.kind = kind
    self.start = start
    self.end = end
    self.zone = zone
  }
}
