// A schema and the tables derived from it, shared by all devices that declare an equal schema. A thousand adapters in cars of the same
// model need one table.

import Protocols
import Varlink

@Loop final class SharedSchema {
  let schema: Schema
  private let indexes: [String: Int]
  /// The constant parts of each property's encoded reading.
  private(set) lazy var heads = schema.properties.map { EncodedProperty(property: $0.name, unit: $0.unit) }

  init(_ schema: Schema) {
    self.schema = schema
    indexes = Dictionary(zip(schema.properties.map(\.name), 0...)) { first, _ in first }
  }

  /// The position of a property, or nil if there is none with this name.
  func index(of property: String) -> Int? { indexes[property] }

  /// How long a value at this position is fresh; nil if it is retained.
  func freshness(_ index: Int) -> Nanoseconds? {
    if case .fresh(let time) = schema.properties[index].lifetime { time } else { nil }
  }
}
