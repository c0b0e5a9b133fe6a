// What the daemon must know of a kind before there is a device of it: its name, the links and the configuration keys it
// takes, and how to make its machine. The Registry in vehicled is a list of these; validation and help follow from them.

/// A kind of device.
public struct Kind: Sendable {
  /// As `kind = "…"` in the configuration.
  public var name: String
  /// One line for a person.
  public var summary: String
  /// The links it takes from the configuration.
  public var links: [LinkRole]
  /// Its configuration keys beside `kind`, `record` and the links.
  public var options: [Option]
  /// Its configuration keys that name files with secrets in them.
  public var secrets: [Secret]
  /// Its named subsections, as `[device.board.mode.eco]`.
  public var sections: [Section]
  /// What whoever runs such a device should know about its safety; told in the journal once and by `vehiclectl doctor`.
  public var caution: (@Sendable (Setup) -> String?)?
  /// Makes the machine, or says which option cannot be.
  public var make: @Sendable (Setup) throws(OptionError) -> any Machine

  /// Declares a kind.
  public init(
    name: String, summary: String, links: [LinkRole], options: [Option], secrets: [Secret] = [], sections: [Section] = [],
    caution: (@Sendable (Setup) -> String?)? = nil,
    make: @escaping @Sendable (Setup) throws(OptionError) -> any Machine
  ) {
    self.name = name
    self.summary = summary
    self.links = links
    self.options = options
    self.secrets = secrets
    self.sections = sections
    self.caution = caution
    self.make = make
  }
}

/// A link that the configuration gives to a device.
public struct LinkRole: Sendable {
  public var name: LinkName
  /// The configuration key that holds its URL.
  public var key: String
  /// URL schemes it can be reached by, the usual one first: `serial`, `tcp`, `ble`.
  public var schemes: [String]
  /// What its peers are on BLE, where `ble` is one of the schemes.
  public var gatt: GATTRole?
  public var required: Bool
  /// A peer that does not acknowledge is given up after half a minute. Not one that serves nobody else once it was left, and that
  /// must hear what was said last whenever it can be reached again.
  public var givesUp: Bool

  /// Declares a link. `replay:` is always accepted.
  public init(
    _ name: LinkName = .main, key: String = "link", schemes: [String], gatt: GATTRole? = nil, required: Bool = true, givesUp: Bool = true
  ) {
    self.name = name
    self.key = key
    self.schemes = schemes
    self.gatt = gatt
    self.required = required
    self.givesUp = givesUp
  }
}

/// A configuration key of a kind.
public struct Option: Sendable {
  /// What a key names of other devices.
  public enum Reference: Sendable, Equatable {
    /// A list of properties, as `band.heart-rate`.
    case properties
    /// A device with these properties.
    case device(with: [String])
  }

  public var name: String
  public var rule: ValueRule
  public var fallback: Value?
  /// What it names of other devices, where it does: that must be there.
  public var reference: Reference?
  public var help: String

  /// Declares a key; without a default it may be left out and is then absent from `Setup.options`.
  public init(_ name: String, _ rule: ValueRule, default fallback: Value? = nil, reference: Reference? = nil, help: String) {
    self.name = name
    self.rule = rule
    self.fallback = fallback
    self.reference = reference
    self.help = help
  }
}

/// A configuration key that names a file with a secret in it: a path, or the name of a systemd credential. Only the daemon's user
/// may be able to read it. A kind that cannot do without says so in `make`.
public struct Secret: Sendable {
  public var name: String
  public var help: String

  /// Declares a key.
  public init(_ name: String, help: String) { (self.name, self.help) = (name, help) }
}

/// What is in a secret's file, without the white space at its end. It describes itself without telling.
public struct SecretBytes: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  public var bytes: [UInt8]

  /// These bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }
  public var description: String { "(\(bytes.count) secret bytes)" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Subsections of a device's section that a person names: `[device.board.mode.eco]` is one of `mode`, called `eco`.
public struct Section: Sendable {
  public var name: String
  public var options: [Option]
  public var help: String
  /// A folder beside the configuration. What stands in its files as `[mode.eco]` every device of the kind has, or those that the
  /// key `devices` names there.
  public var folder: String?
  /// How long the name that a person gives can be.
  public var maxNameLength: Int
  /// What is wrong with one of them beyond what the rules of its keys say. Asked for each device that has it.
  public var check: (@Sendable (Setup.Subsection, Setup) -> [OptionError])?

  /// Declares subsections with these keys.
  public init(
    _ name: String, options: [Option], help: String, folder: String? = nil, maxNameLength: Int = 32,
    check: (@Sendable (Setup.Subsection, Setup) -> [OptionError])? = nil
  ) {
    self.name = name
    self.options = options
    self.help = help
    self.folder = folder
    self.maxNameLength = maxNameLength
    self.check = check
  }
}

/// What a machine is made from.
public struct Setup: Sendable {
  /// The device's name, for words that tell a person what to type.
  public var device: String
  /// Checked values by key, defaults filled in.
  public var options: [String: Value]
  /// What is in the files of `Kind.secrets`, by key.
  public var secrets: [String: SecretBytes]
  /// What the subsections hold, by the section's name, in the order of the file.
  public var sections: [String: [Subsection]]
  /// The URLs of the configured links, for those who find something else at the same place.
  public var links: [LinkName: String]
  /// Where on a period's grid this device does its periodic work, 0 ..< 1: devices are spread so that they take turns.
  public var phase: Double
  /// Entropy, for machines that need jitter or nonces.
  public var seed: UInt64

  /// One subsection: the name that a person gave it, and its checked values by key.
  public struct Subsection: Sendable, Equatable {
    public var name: String
    public var options: [String: Value]

    /// A subsection of these values.
    public init(_ name: String, _ options: [String: Value]) {
      self.name = name
      self.options = options
    }
  }

  /// A setup of these values.
  public init(
    device: String = "DEVICE", options: [String: Value] = [:], secrets: [String: SecretBytes] = [:], sections: [String: [Subsection]] = [:],
    links: [LinkName: String] = [:], phase: Double = 0, seed: UInt64 = 0
  ) {
    self.device = device
    self.options = options
    self.secrets = secrets
    self.sections = sections
    self.links = links
    self.phase = phase
    self.seed = seed
  }
}

/// An option that is wrong in a way that its rule cannot say.
public struct OptionError: Error, Equatable, Sendable {
  /// nil: the section as a whole.
  public var option: String?
  public var message: String
  /// Where in the option's text, in bytes from its beginning.
  public var offset: Int?

  /// Says which option, what is wrong with it, and what would be right.
  public init(_ option: String?, _ message: String, at offset: Int? = nil) {
    self.option = option
    self.message = message
    self.offset = offset
  }
}
