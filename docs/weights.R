# A coreset, `coreset.csv`, in tools of R: complaints, distance, carrier and a weight for each row.
suppressPackageStartupMessages({library(brms); library(rstanarm); library(lme4)})
kept <- read.csv("coreset.csv")
kept$one <- 1
shown <- function(tool, draws) {
  draws <- as.matrix(draws)
  cat(sprintf("%-9s %s\n", tool, paste(sprintf("%s %.3f (%.3f)", c("intercept", "slope", "tau"),
      colMeans(draws), apply(draws, 2, sd)), collapse = "  ")))
}

# A column of ones in place of the intercept: its prior would be at the mean of the rows that are seen.
by_rstanarm <- stan_glmer(complaints ~ 0 + one + distance + (1 | carrier), data = kept,
                          family = poisson(), weights = weight, prior = normal(0, 1),
                          prior_covariance = decov(shape = 1, scale = 1),
                          chains = 2, iter = 2000, seed = 1, refresh = 0)
draws <- as.matrix(by_rstanarm)[, c("one", "distance", "Sigma[carrier:(Intercept),(Intercept)]")]
draws[, 3] <- sqrt(draws[, 3])
shown("rstanarm", draws)

by_brms <- brm(complaints | weights(weight) ~ 0 + Intercept + distance + (1 | carrier), data = kept,
               family = poisson(), prior = c(prior(normal(0, 1), class = "b"),
                                             prior(normal(0, 1), class = "sd")),
               chains = 2, iter = 2000, seed = 1, refresh = 0, silent = 2)
shown("brms", as.matrix(by_brms)[, c("b_Intercept", "b_distance", "sd_carrier__Intercept")])

# The maximum, no posterior. It says that weighted counts are not whole numbers, which is so.
by_lme4 <- suppressWarnings(glmer(complaints ~ distance + (1 | carrier), data = kept,
                                  family = poisson(), weights = weight))
cat(sprintf("lme4      intercept %.3f  slope %.3f  tau %.3f\n", fixef(by_lme4)[1],
            fixef(by_lme4)[2], sqrt(VarCorr(by_lme4)$carrier[1])))
cat(sprintf("R %s, rstanarm %s, brms %s, lme4 %s\n", getRversion(), packageVersion("rstanarm"),
            packageVersion("brms"), packageVersion("lme4")))
