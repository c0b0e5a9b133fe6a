// The stored settings of a car: neutral position, sensitivity, web page and video quality. A setting takes effect, and its command
// completes, once it is stored; settings can be changed without a link.

struct CarSettings: Sendable {
  private static let sensitivityKey = "sensitivity"
  private static let neutralKey = "neutral"
  private static let pageKey = "web-page"
  private static let qualityKey = "video-quality"
  private static let maxPageLength = 2000
  private static let most = 32
  private static let sensitivities = 0.67...1.33

  enum Setting: Sendable, Equatable {
    case sensitivity(Double)
    case neutral(CarAttitude)
    /// nil: the car's own page.
    case page(String?)
    case quality(CarVideoQuality)

    var key: String {
      switch self {
      case .sensitivity: sensitivityKey
      case .neutral: neutralKey
      case .page: pageKey
      case .quality: qualityKey
      }
    }

    var bytes: [UInt8] {
      switch self {
      case .sensitivity(let factor): return Array(Value.text(factor).utf8)
      case .neutral(let attitude):
        var bytes: [UInt8] = []
        for angle in [attitude.roll, attitude.pitch, attitude.yaw] {
          if !bytes.isEmpty { bytes.append(0x20) }
          CarNumber.write(CarNumber.millionths(angle) ?? 0, to: &bytes)
        }
        return bytes
      case .page(let page): return Array((page ?? "").utf8)
      case .quality(let quality): return Array(quality.rawValue.utf8)
      }
    }
  }

  private(set) var sensitivity = 1.0
  private(set) var neutral = CarAttitude.level
  private(set) var quality = CarVideoQuality.medium
  private var chosenPage: String?
  /// The car's own page.
  private let ownPage: String?
  /// Settings that are being stored, and their commands.
  private var pending: [(id: CommandID?, setting: Setting)] = []

  init(page: String?) { ownPage = page }

  private var page: String? { chosenPage ?? ownPage }

  /// The neutral position after all pending stores.
  private var nextNeutral: CarAttitude {
    for case (_, .neutral(let attitude)) in pending.reversed() { return attitude }
    return neutral
  }

  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    func text(_ key: String) -> String? { kept[key].map { String(decoding: $0.prefix(Self.maxPageLength), as: UTF8.self) } }
    // A damaged setting counts as unset.
    if let factor = text(Self.sensitivityKey).flatMap(CarNumber.read), Self.sensitivities.contains(factor) { sensitivity = factor }
    let angles = text(Self.neutralKey)?.split(separator: " ").compactMap(CarNumber.read) ?? []
    if angles.count == 3 {
      let attitude = CarAttitude(roll: angles[0], pitch: angles[1], yaw: angles[2])
      if attitude.wrongArgument == nil { neutral = attitude }
    }
    if let page = text(Self.pageKey), !page.isEmpty, Self.refusal(page: page) == nil { chosenPage = page }
    if let quality = text(Self.qualityKey).flatMap(CarVideoQuality.init) { self.quality = quality }
    publish(&effects)
  }

  /// Why this is not a valid page, or nil.
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

  /// Changes a setting; false if the property is not one. While the car is driven, a new neutral position would act as a set-point.
  mutating func set(_ signal: CarSignal, _ value: Value, for id: CommandID, isDriven: Bool, _ effects: inout Effects) -> Bool {
    func refuse(_ message: String) { effects.fail(command: id, .invalid(argument: "value", message)) }
    switch signal {
    case .sensitivity, .neutralRoll, .neutralPitch, .neutralYaw:
      if isDriven {
        refuseWhileDriven(id, &effects)
      } else if let number = value.number, number.isFinite, CarSignal.ranges[signal.rawValue]?.contains(number) != false {
        store(signal == .sensitivity ? .sensitivity(number) : .neutral(nextNeutral.with(signal, number).rounded), for: id, &effects)
      } else {
        refuse("\(value.text) is out of range")
      }
    case .videoQuality:
      if case .string(let name) = value, let quality = CarVideoQuality(rawValue: name) {
        store(.quality(quality), for: id, &effects)
      } else {
        refuse("\(value.text) is not low, medium or high")
      }
    case .webPage:
      guard case .string(let page) = value else {
        refuse("not a string")
        return true
      }
      if !page.isEmpty, let message = Self.refusal(page: page) {
        refuse(message)
      } else {
        store(.page(page.isEmpty ? nil : page), for: id, &effects)
      }
    default: return false
    }
    return true
  }

  /// Sets the neutral position to the driver's current one, or to level.
  mutating func setNeutral(
    _ position: Value?, attitude: CarAttitude?, for id: CommandID, isDriven: Bool, _ effects: inout Effects
  ) {
    switch position {
    case .string("horizontal") where isDriven: refuseWhileDriven(id, &effects)
    case .string("horizontal"): store(.neutral(.level), for: id, &effects)
    case .string("here"):
      guard let attitude else {
        let message = "no current position: run \"vehiclectl drive\" and hold the controls in the neutral position"
        return effects.refuse(command: id, code: .noTilt, message)
      }
      store(.neutral(attitude.rounded), for: id, &effects)
    default:
      effects.fail(command: id, .invalid(argument: "position", "must be here or horizontal, not \(position?.text ?? "empty")"))
    }
  }

  private func refuseWhileDriven(_ id: CommandID, _ effects: inout Effects) {
    effects.refuse(command: id, code: .driving, "the car is being driven: stop it first")
  }

  private mutating func store(_ setting: Setting, for id: CommandID, _ effects: inout Effects) {
    guard pending.count < Self.most else {
      return effects.refuse(command: id, code: .busy, "too many pending writes to disk: try again later")
    }
    pending.append((id, setting))
    effects.append(.store(key: setting.key, setting.bytes))
  }

  /// A store has ended: the setting takes effect, and its command completes.
  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) {
    guard let index = pending.firstIndex(where: { $0.setting.key == key }) else { return }
    let (id, setting) = pending.remove(at: index)
    if let failure { return effects.refuse(command: id, code: .notStored, failure) }
    switch setting {
    case .sensitivity(let factor): sensitivity = factor
    case .neutral(let attitude): neutral = attitude
    case .page(let page): chosenPage = page
    case .quality(let quality): self.quality = quality
    }
    publish(&effects)
    effects.succeed(command: id)
  }

  mutating func forget(_ id: CommandID) {
    for index in pending.indices where pending[index].id == id { pending[index].id = nil }
  }

  private func publish(_ effects: inout Effects) {
    effects.publish(.sensitivity, .float(sensitivity))
    for (signal, angle) in [(CarSignal.neutralRoll, neutral.roll), (.neutralPitch, neutral.pitch), (.neutralYaw, neutral.yaw)] {
      effects.publish(signal, .float(angle))
    }
    effects.publish(.videoQuality, .string(quality.rawValue))
    if let page {
      effects.publish(.webPage, .string(page))
    } else {
      effects.withdraw(.webPage, "not set, and the link has no host name for the car's own page: vehiclectl set web-page URL")
    }
  }
}
