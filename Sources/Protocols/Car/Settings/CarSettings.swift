// The stored settings of a car: neutral position, sensitivity, web page and video quality. A setting takes effect, and its command
// completes, once the setting is stored. Settings can be changed without a link.

struct CarSettings: Sendable {
  /// The neutral position is stored as one string, so that its angles change together.
  private static let neutralProperty = Property("neutral", .string, persisted: true, help: "Roll, pitch and yaw in rad")
  private static let neutralIndex = CarProperty.allCases.count
  private static let maxPageLength = 2000

  private let device: String
  private var persisted: PersistedSettings
  private(set) var neutral = PhoneAttitude.level
  /// The URL of the car's own web page; nil if the link has no host name.
  private let ownPage: String?

  init(_ options: CarOptions) {
    device = options.device
    ownPage = options.endpoint?.page
    persisted = PersistedSettings(CarProperty.properties(options) + [Self.neutralProperty])
  }

  var sensitivity: Double { persisted[.sensitivity]?.number ?? 1 }
  var quality: CarVideoQuality { persisted[.videoQuality].flatMap { CarVideoQuality(rawValue: $0.text) } ?? .medium }
  private var page: String? { persisted[.webPage]?.text ?? ownPage }

  /// The neutral position after all pending stores.
  private var nextNeutral: PhoneAttitude { Self.attitude(persisted.latest(Self.neutralIndex)) }

  private static func attitude(_ stored: Value?) -> PhoneAttitude { stored.flatMap { PhoneAttitude(stored: $0.text) } ?? .level }

  mutating func restore(_ files: [String: [UInt8]], _ effects: inout Effects) {
    let damaged = persisted.restore(files) { property, value in
      switch property {
      case Self.neutralIndex: PhoneAttitude(stored: value.text) != nil
      case CarProperty.webPage.rawValue: Self.refusal(page: value.text) == nil
      default: true
      }
    }
    if !damaged.isEmpty { effects.append(.event(name: "state-corrupt", text: damagedSettingsMessage(damaged))) }
    publish(&effects)
  }

  /// Why this is not a valid URL of a web page, or nil if it is.
  private static func refusal(page: String) -> String? {
    let start = page.lowercased()
    guard start.hasPrefix("http://") && page.utf8.count > 7 || start.hasPrefix("https://") && page.utf8.count > 8 else {
      return "must start with http:// or https://, followed by a host"
    }
    if !page.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }) { return "must be ASCII without spaces: use percent-encoding" }
    if page.utf8.count > maxPageLength { return "must have at most \(maxPageLength) characters" }
    return nil
  }

  // MARK: Commands

  /// Changes a setting; returns false if the property is not a setting. While the car is driven, a new neutral position or sensitivity is
  /// rejected, because it would change the current setpoint.
  mutating func set(_ property: CarProperty, _ value: Value, for id: CommandID, isDriven: Bool, _ effects: inout Effects) -> Bool {
    do throws(CommandError) {
      switch property {
      case .neutralRoll, .neutralPitch, .neutralYaw:
        guard let angle = value.number, CarProperty.ranges[property.rawValue]?.contains(angle) == true else {
          throw .invalid(argument: "value", "\(value.text) is out of range")
        }
        try set(nextNeutral.with(property, angle), for: id, isDriven: isDriven, &effects)
      case .sensitivity where isDriven: throw Self.driven
      case .webPage:
        if value != .string(""), let message = Self.refusal(page: value.text) { throw .invalid(argument: "value", message) }
        fallthrough
      case .sensitivity, .videoQuality: try persisted.set(property.rawValue, value, for: id, &effects)
      default: return false
      }
    } catch {
      effects.fail(command: id, error)
    }
    return true
  }

  /// Sets the neutral position: `here` is the attitude that the driver requests now, `horizontal` is level.
  mutating func setNeutral(
    _ position: Value?, attitude: PhoneAttitude?, for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) {
    do throws(CommandError) {
      switch position {
      case .string("horizontal"): try set(.level, for: id, isDriven: isDriven, &effects)
      case .string("here"):
        guard let attitude else {
          let message = "no current position: run \"vehiclectl drive\" and hold the controls in the neutral position"
          throw .refused(code: .noTilt, message)
        }
        try set(attitude, for: id, isDriven: false, &effects)
      default: throw .invalid(argument: "position", "must be here or horizontal, not \(position?.text ?? "empty")")
      }
    } catch {
      effects.fail(command: id, error)
    }
  }

  private static let driven = CommandError.refused(code: .driving, "the car is being driven: stop it first")

  private mutating func set(
    _ neutral: PhoneAttitude, for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) throws(CommandError) {
    if isDriven { throw Self.driven }
    try persisted.set(Self.neutralIndex, .string(neutral.stored), for: id, &effects)
  }

  /// Handles the end of a store: the setting takes effect, and its command completes.
  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) {
    guard let change = persisted.stored(key, failure, &effects) else { return }
    publish(&effects)
    effects.succeed(command: change.id)
  }

  mutating func cancel(_ id: CommandID) { persisted.cancel(id) }

  private mutating func publish(_ effects: inout Effects) {
    neutral = Self.attitude(persisted[Self.neutralIndex])
    effects.publish(.sensitivity, .float(sensitivity))
    for (property, angle) in [(CarProperty.neutralRoll, neutral.roll), (.neutralPitch, neutral.pitch), (.neutralYaw, neutral.yaw)] {
      effects.publish(property, .float(angle))
    }
    effects.publish(.videoQuality, .string(quality.rawValue))
    if let page {
      effects.publish(.webPage, .string(page))
    } else {
      effects.withdraw(.webPage, "not set, and the link has no host name for the car's own page: vehiclectl set \(device).web-page URL")
    }
  }
}

extension PersistedSettings {
  fileprivate subscript(_ property: CarProperty) -> Value? { self[property.rawValue] }
}
