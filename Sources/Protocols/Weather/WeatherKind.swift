// The configuration of the `weather` kind. It has no link: it queries an Open-Meteo server over HTTP. The location is private, so no
// error message may contain a coordinate.
// Source: open-meteo.com, the forecast and geocoding APIs and their fair-use limit.

extension Kind {
  /// The weather at one location.
  public static let weather = Kind(
    name: "weather",
    summary: "The weather at one location, from Open-Meteo or a compatible server",
    links: [],
    options: [
      Option("latitude", ValueRule(.float, unit: "°", range: -90...90), help: "Latitude of the location; requires longitude"),
      Option("longitude", ValueRule(.float, unit: "°", range: -180...180), help: "Longitude of the location; requires latitude"),
      Option("place", ValueRule(.string), help: "Name of a town, looked up once; instead of latitude and longitude"),
      Option(
        "interval", ValueRule(.int, unit: "min", range: 15...1440), default: .int(15),
        help: "Interval between requests; the service updates its data every 15 min"),
      Option("url", ValueRule(.string), default: .string("https://api.open-meteo.com"), help: "Server of the forecast service"),
      Option(
        "geocoding-url", ValueRule(.string), default: .string("https://geocoding-api.open-meteo.com"),
        help: "Server of the geocoding service"),
      Option(
        "proxy", ValueRule(.string), help: "Proxy URL, as in http://192.168.0.1:3128; default: from the environment; \"\": no proxy"),
    ]
  ) { setup throws(OptionError) in
    WeatherMachine(try WeatherSettings(setup))
  }
}

/// Latitude and longitude in degrees; positive is north and east.
struct Coordinates: Sendable, Equatable {
  var latitude: Double
  var longitude: Double
}

/// The configuration of a weather device.
struct WeatherSettings: Sendable {
  enum Site: Sendable, Equatable {
    case coordinates(Coordinates)
    case place(String)

    /// Identifies the site in a stored response, because a response for another site must not be shown.
    var key: String {
      switch self {
      case .coordinates(let coordinates): "\(WeatherRequest.decimal(coordinates.latitude)),\(WeatherRequest.decimal(coordinates.longitude))"
      case .place(let name): name
      }
    }
  }

  let site: Site
  let interval: Nanoseconds
  let url: String
  let geocodingURL: String
  let proxy: String?

  /// How long a response is valid.
  var freshFor: Nanoseconds { 3 * interval }

  private static let maxPlaceLength = 100

  /// Parses the keys; throws for an invalid one.
  init(_ setup: Setup) throws(OptionError) {
    let options = setup.options
    switch (options["latitude"]?.number, options["longitude"]?.number, options["place"]) {
    case (let latitude?, let longitude?, nil): site = .coordinates(Coordinates(latitude: latitude, longitude: longitude))
    case (nil, nil, .string(let name)?):
      guard (1...Self.maxPlaceLength).contains(name.count), name.utf8.count <= 4 * Self.maxPlaceLength, name.contains(where: \.isLetter),
        name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
      else {
        throw OptionError("place", "not a place; write the name of a town, as in \"Trondheim\"")
      }
      site = .place(name)
    case (nil, nil, _): throw OptionError("place", "the location is missing; add place, or latitude and longitude")
    case (_, _, .some): throw OptionError("place", "place and coordinates are mutually exclusive; remove one of them")
    case (nil, _, _): throw OptionError("latitude", "latitude is missing; add it, or remove longitude")
    case (_, nil, _): throw OptionError("longitude", "longitude is missing; add it, or remove latitude")
    }
    interval = Nanoseconds(options["interval"]?.number ?? 15) * 60 * .second
    url = try setup.httpServer("url")
    geocodingURL = try setup.httpServer("geocoding-url")
    proxy = try setup.httpProxy()
  }
}
