// The declaration of a kind of device: its name, links and configuration keys, and how to make its protocol state machine (Machine). The
// Registry in vehicled lists the kinds; validation and help are derived from the declarations.

/// A kind of device.
public struct Kind: Sendable {
  /// The name, as in `kind = "…"` in the configuration.
  public var name: String
  /// A summary in one line.
  public var summary: String
  /// The links that the configuration can give to the device.
  public var links: [LinkRole]
  /// The configuration keys in addition to `kind`, `record` and the links.
  public var options: [Option]
  /// The configuration keys that name files with secrets.
  public var secrets: [Secret]
  /// The named subsections, such as `[device.board.mode.eco]`.
  public var sections: [Section]
  /// A safety warning for the owner of the device, or nil if there is none; logged once, and shown by `vehiclectl doctor`.
  public var warning: (@Sendable (Setup) -> String?)?
  /// Makes the machine; throws if an option is invalid.
  public var make: @Sendable (Setup) throws(OptionError) -> any Machine

  /// Declares a kind.
  public init(
    name: String, summary: String, links: [LinkRole], options: [Option], secrets: [Secret] = [], sections: [Section] = [],
    warning: (@Sendable (Setup) -> String?)? = nil,
    make: @escaping @Sendable (Setup) throws(OptionError) -> any Machine
  ) {
    self.name = name
    self.summary = summary
    self.links = links
    self.options = options
    self.secrets = secrets
    self.sections = sections
    self.warning = warning
    self.make = make
  }
}

/// A link that the configuration gives to a device.
public struct LinkRole: Sendable {
  public var name: LinkName
  /// The configuration key that holds its URL.
  public var key: String
  /// The URL schemes that can reach it, the usual one first: `serial`, `tcp`, `ble`.
  public var schemes: [String]
  /// An example URL for messages, or nil to use the usual ones of the schemes.
  public var example: String?
  /// What to check if the link is down, as part of a message, or nil to use the usual advice for the schemes.
  public var remedy: String?
  /// The BLE properties of its peers, if `ble` is one of the schemes.
  public var gatt: PeripheralDescription?
  public var isRequired: Bool
  /// Whether a peer that acknowledges nothing for 30 s is disconnected. False for a peer that accepts no other client after a lost
  /// connection and that must receive the shutdown sequence as soon as it is reachable again.
  public var disconnectsUnresponsivePeer: Bool
  /// Whether what is received does not depend on what is sent, so that it can be recorded and replayed from any time on.
  public var onlyReceives: Bool

  /// Declares a link. `replay:` is always accepted.
  public init(
    _ name: LinkName = .main, key: String = "link", schemes: [String], example: String? = nil, remedy: String? = nil,
    gatt: PeripheralDescription? = nil, isRequired: Bool = true, disconnectsUnresponsivePeer: Bool = true,
    onlyReceives: Bool = false
  ) {
    self.name = name
    self.key = key
    self.schemes = schemes
    self.example = example
    self.remedy = remedy
    self.gatt = gatt
    self.isRequired = isRequired
    self.disconnectsUnresponsivePeer = disconnectsUnresponsivePeer
    self.onlyReceives = onlyReceives
  }
}

/// A configuration key of a kind.
public struct Option: Sendable {
  /// A reference to other devices.
  public enum Reference: Sendable, Equatable {
    /// A list of properties, such as `band.heart-rate`.
    case properties
    /// A device that has these properties.
    case device(with: [String])
  }

  /// The values that another option implies for this one if it is not set, by the value of the other option.
  public struct Implication: Sendable, Equatable {
    public var option: String
    public var values: [String: Value]

    public init(_ option: String, _ values: [String: Value]) { (self.option, self.values) = (option, values) }
  }

  public var name: String
  public var rule: ValueRule
  public var defaultValue: Value?
  /// The properties or the device that the value refers to, which must exist; or nil if the value is not a reference.
  public var reference: Reference?
  /// Whether the value is a setting of the link, which must be the same for all devices on it.
  public var describesLink: Bool
  public var implication: Implication?
  public var help: String

  /// Declares a key. An optional key without a default is absent from `Setup.options`.
  public init(
    _ name: String, _ rule: ValueRule, default defaultValue: Value? = nil, reference: Reference? = nil, describesLink: Bool = false,
    implication: Implication? = nil, help: String
  ) {
    self.name = name
    self.rule = rule
    self.defaultValue = defaultValue
    self.reference = reference
    self.describesLink = describesLink
    self.implication = implication
    self.help = help
  }
}

/// A configuration key that names a file with a secret: a path, or the name of a systemd credential. The file must be readable by
/// the daemon's user only. If a kind requires the secret, `make` reports that it is missing.
public struct Secret: Sendable {
  public var name: String
  public var help: String

  /// Declares a key.
  public init(_ name: String, help: String) { (self.name, self.help) = (name, help) }
}

/// The contents of a secret file, without trailing white space. Its description does not reveal them.
public struct SecretBytes: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  public var bytes: [UInt8]

  /// Creates a secret with these bytes.
  public init(_ bytes: [UInt8]) { self.bytes = bytes }
  public var description: String { "(\(bytes.count) secret bytes)" }
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Subsections that the user names: `[device.board.mode.eco]` is a `mode` with the name `eco`.
public struct Section: Sendable {
  public var name: String
  public var options: [Option]
  public var help: String
  /// A directory beside the configuration. A section `[mode.eco]` in its files applies to all devices of the kind, or to those
  /// in its key `devices`.
  public var folder: String?
  /// The maximum length of the user's name, in bytes.
  public var maxNameLength: Int
  /// Finds errors that the rules of the keys cannot express. Called for each device that has the subsection.
  public var check: (@Sendable (Setup.Subsection, Setup) -> [OptionError])?

  /// Declares subsections.
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

/// The configuration of one device, from which its machine is made.
public struct Setup: Sendable {
  /// The device's name, for messages that contain a command to type.
  public var device: String
  /// Validated values by key, with defaults.
  public var options: [String: Value]
  /// The contents of the files of `Kind.secrets`, by key.
  public var secrets: [String: SecretBytes]
  /// The subsections by section name, in the order of the file.
  public var sections: [String: [Subsection]]
  /// The URLs of the configured links, for machines that open a further link to the same peer.
  public var links: [LinkName: String]
  /// The position of the device's periodic work within a period, 0 ..< 1. Devices have different phases so that they
  /// do not all poll at once.
  public var phase: Double
  /// Entropy, for machines that need jitter or nonces.
  public var seed: UInt64

  /// One subsection: its name in the configuration, and its validated values by key.
  public struct Subsection: Sendable, Equatable {
    public var name: String
    public var options: [String: Value]

    /// Creates a subsection.
    public init(_ name: String, _ options: [String: Value]) {
      self.name = name
      self.options = options
    }
  }

  /// Creates a setup.
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

/// An error in an option that the option's rule cannot detect.
public struct OptionError: Error, Equatable, Sendable {
  /// The key, or nil if the error concerns the section as a whole.
  public var option: String?
  public var message: String
  /// The position in the option's text, in bytes from its start.
  public var offset: Int?

  /// Creates an error. The message gives the cause and a valid alternative.
  public init(_ option: String?, _ message: String, at offset: Int? = nil) {
    self.option = option
    self.message = message
    self.offset = offset
  }
}
