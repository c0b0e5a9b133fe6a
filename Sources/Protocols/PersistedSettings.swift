// Settings that clients set and that survive a restart: the persisted properties of a schema, each stored in a file with the property's
// name. A setting takes effect, and its command completes, once it is stored; if it cannot be stored, the old value remains.

struct PersistedSettings: Sendable {
  /// The change of a setting by a command.
  struct Change: Sendable, Equatable {
    /// The command that waits for the change, or nil if there is none or its caller has disconnected.
    fileprivate(set) var id: CommandID?
    /// The position of the property in the schema.
    let property: Int
    /// The new value, or nil to unset the property.
    let value: Value?
  }

  private static let maxPending = 32
  private static let maxLength = 4096

  private let properties: [Property]
  private var values: [Int: Value] = [:]
  /// Changes that are being stored, in order.
  private var pending: [Change] = []

  init(_ properties: [Property]) { self.properties = properties }

  /// The stored value of the property at this position of the schema, or nil if it is not set.
  subscript(_ property: Int) -> Value? { values[property] }

  var isStoring: Bool { !pending.isEmpty }

  /// The value that was set last, even if it is still being stored, or nil if none is set. The next command is validated against it.
  func latest(_ property: Int) -> Value? {
    pending.last { $0.property == property }.map(\.value) ?? values[property]
  }

  /// Restores stored settings. A damaged setting is treated as unset; returns the names of the damaged settings. `isValid` checks what the
  /// property's declaration cannot express.
  mutating func restore(_ files: [String: [UInt8]], isValid: (Int, Value) -> Bool = { _, _ in true }) -> [String] {
    var damaged: [String] = []
    for (index, property) in properties.enumerated() where property.persisted {
      guard let bytes = files[property.name] else { continue }
      let value = try? property.rule.parse(String(decoding: bytes.prefix(Self.maxLength), as: UTF8.self))
      if let value, value != .string(""), isValid(index, value) { values[index] = value } else { damaged.append(property.name) }
    }
    return damaged
  }

  /// Checks a value against the property's declaration and starts storing it; an empty string unsets the property. `id` is nil if no
  /// command waits.
  mutating func set(_ property: Int, _ value: Value, for id: CommandID?, _ effects: inout Effects) throws(CommandError) {
    let (name, rule) = (properties[property].name, properties[property].rule)
    guard properties[property].persisted else { throw .refused(code: .readOnly, "\(name) is not a setting") }
    let accepted: Value
    do { accepted = try rule.accept(value) } catch { throw .invalid(argument: "value", error.description) }
    guard id == nil || pending.count < Self.maxPending else {
      throw .refused(code: .busy, "too many pending writes to disk: try again later")
    }
    pending.append(Change(id: id, property: property, value: accepted == .string("") ? nil : accepted))
    effects.append(.store(key: name, Array(accepted.text.utf8)))
  }

  /// Handles the completion of a write. Returns the setting that takes effect; the machine completes its command. If the setting could not
  /// be stored, its command fails.
  mutating func stored(_ key: String, _ failure: String?, _ effects: inout Effects) -> Change? {
    guard let index = pending.firstIndex(where: { properties[$0.property].name == key }) else { return nil }
    let change = pending.remove(at: index)
    if let failure {
      effects.refuse(command: change.id, code: .notStored, failure)
      return nil
    }
    values[change.property] = change.value
    return change
  }

  /// Removes a command whose caller has disconnected. Its setting is stored nevertheless.
  mutating func cancel(_ id: CommandID) {
    for index in pending.indices where pending[index].id == id { pending[index].id = nil }
  }

  /// Fails all commands that wait for a write. Their settings are stored nevertheless.
  mutating func failCommands(_ error: CommandError, _ effects: inout Effects) {
    for index in pending.indices {
      effects.fail(command: pending[index].id, error)
      pending[index].id = nil
    }
  }
}
