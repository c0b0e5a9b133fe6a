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

  var page: String? { chosenPage ?? ownPage }

  /// The neutral position after all pending stores.
  var nextNeutral: CarAttitude {
    for case (_, .neutral(let attitude)) in pending.reversed() { return attitude }
    return neutral
  }

  mutating func restore(_ kept: [String: [UInt8]]) {
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
  }

  /// Why this is not a valid page, or nil.
  static func refusal(page: String) -> String? {
    let start = page.lowercased()
    guard start.hasPrefix("http://") && page.utf8.count > 7 || start.hasPrefix("https://") && page.utf8.count > 8 else {
      return "must start with http:// or https://, followed by a host"
    }
    if !page.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }) { return "must be ASCII without spaces: use percent-encoding" }
    if page.utf8.count > maxPageLength { return "must have at most \(maxPageLength) characters" }
    return nil
  }

  /// Starts to store a setting; false if too many stores are pending.
  mutating func keep(_ setting: Setting, for id: CommandID, _ effects: inout Effects) -> Bool {
    guard pending.count < Self.most else { return false }
    pending.append((id, setting))
    effects.append(.store(key: setting.key, setting.bytes))
    return true
  }

  /// Handles the end of a store: returns the setting and its command.
  mutating func stored(_ key: String, _ failure: String?) -> (id: CommandID?, setting: Setting)? {
    guard let index = pending.firstIndex(where: { $0.setting.key == key }) else { return nil }
    let (id, setting) = pending.remove(at: index)
    if failure == nil {
      switch setting {
      case .sensitivity(let factor): sensitivity = factor
      case .neutral(let attitude): neutral = attitude
      case .page(let page): chosenPage = page
      case .quality(let quality): self.quality = quality
      }
    }
    return (id, setting)
  }

  mutating func forget(_ id: CommandID) {
    for index in pending.indices where pending[index].id == id { pending[index].id = nil }
  }
}

extension CarMachine {
  mutating func restore(_ kept: [String: [UInt8]], _ effects: inout Effects) {
    settings.restore(kept)
    restoreStanding(kept, &effects)
    reader.start(&effects)
    if let place = options.place {
      publish(.videoURL, .string(place.video), &effects)
    } else {
      withdraw(.videoURL, "unknown: the link has no host name", &effects)
    }
    publishSettings(&effects)
  }

  mutating func keep(_ setting: CarSettings.Setting, for id: CommandID, _ effects: inout Effects) {
    if !settings.keep(setting, for: id, &effects) {
      effects.append(.complete(id, .failure(.refused(code: "busy", "too many pending writes to disk: try again later"))))
    }
  }

  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) {
    guard let (id, _) = settings.stored(key, failure) else { return }
    if failure == nil { publishSettings(&effects) }
    guard let id else { return }
    effects.append(.complete(id, failure.map { .failure(.refused(code: "not-stored", $0)) } ?? .success(Report())))
  }

  private mutating func publishSettings(_ effects: inout Effects) {
    publish(.sensitivity, .float(settings.sensitivity), &effects)
    for (signal, angle) in [
      (CarSignal.neutralRoll, settings.neutral.roll), (.neutralPitch, settings.neutral.pitch), (.neutralYaw, settings.neutral.yaw),
    ] {
      publish(signal, .float(angle), &effects)
    }
    publish(.videoQuality, .string(settings.quality.rawValue), &effects)
    if let page = settings.page {
      publish(.webPage, .string(page), &effects)
    } else {
      withdraw(.webPage, "not set, and the link has no host name for the car's own page: vehiclectl set web-page URL", &effects)
    }
  }
}
